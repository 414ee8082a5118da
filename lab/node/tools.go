package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// busybox is Debian's static one: the guest's shell, and on the way there an archiver.
const busybox = "/bin/busybox"

// tools are the programs of Debian that Build and Start use.
var tools = []string{"qemu-system-x86_64", "qemu-img", "mke2fs", "modprobe", "depmod", "apt-cache", "apt-get", "dpkg-deb", "ldd", "bash", "go", "gcc", "cp"}

// Missing says why no machine can run here; nil when one can.
func Missing() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("the lab's virtual machine runs on linux/amd64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	for _, name := range tools {
		if _, err := tool(name); err != nil {
			return fmt.Errorf("the lab's virtual machine needs %s, which is not here; to fix: hack/debian-deps.sh node", name)
		}
	}
	if _, err := os.Stat(busybox); err != nil {
		return fmt.Errorf("the lab's virtual machine needs %s, which is not here; to fix: hack/debian-deps.sh node", busybox)
	}
	return nil
}

// tool finds a program; those for administrators are often not on a user's path.
func tool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// output runs a program of the table and returns what it printed.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	path, err := tool(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return out.String(), nil
}

// lines runs a command and hands on each line that it prints; an error carries the last of them.
func lines(cmd *exec.Cmd, each func(string)) error {
	// A terminated script ends what it runs; a killed one cannot.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	var last []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		each(scanner.Text())
		last = append(last[max(0, len(last)-19):], scanner.Text())
	}
	if err := cmd.Wait(); err != nil {
		return errors.Join(err, errors.New(strings.Join(last, "\n")))
	}
	return nil
}
