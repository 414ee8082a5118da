package node

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Debian's systemd, which is copied into the disk with its libraries; its units are not.
const (
	systemdInit = "/lib/systemd/systemd"
	systemctl   = "/bin/systemctl"
)

// MissingSystemd says why no machine with systemd can be made here; nil when one can.
func MissingSystemd() error {
	for _, path := range []string{systemdInit, systemctl} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("a machine with systemd needs %s, which is not here; to fix: apt-get install systemd", path)
		}
	}
	return nil
}

// addSystemd makes systemd the init of a tree, and has containerd use it for cgroups.
func addSystemd(ctx context.Context, root string) error {
	copies := map[string]string{systemdInit: systemdInit, systemctl: systemctl}
	for _, program := range []string{systemdInit, systemctl} {
		text, err := output(ctx, "", "ldd", program)
		if err != nil {
			return err
		}
		for word := range strings.FieldsSeq(text) {
			if filepath.IsAbs(word) {
				copies[word] = word
			}
		}
	}
	if err := copyFiles(root, copies); err != nil {
		return err
	}
	init := filepath.Join(root, "bin", "init")
	if err := os.Remove(init); err != nil {
		return err
	}
	if err := os.Symlink(systemdInit, init); err != nil {
		return err
	}
	units := filepath.Join(root, "etc", "systemd", "system")
	if err := os.MkdirAll(units, 0o755); err != nil {
		return err
	}
	entries, err := fs.ReadDir(files, "files/systemd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyEmbedded(units, map[string]string{"systemd/" + e.Name(): e.Name()}); err != nil {
			return err
		}
	}
	config := filepath.Join(root, "etc", "containerd", "config.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	return os.WriteFile(config, []byte(withSystemd(string(text))), 0o644)
}

// withSystemd names systemd as the cgroup driver in containerd's or the kubelet's configuration.
func withSystemd(config string) string {
	return strings.NewReplacer("SystemdCgroup = false", "SystemdCgroup = true", "cgroupDriver: cgroupfs", "cgroupDriver: systemd").Replace(config)
}
