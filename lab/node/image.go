package node

import (
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// files are what the guest's disk has besides programs.
//
//go:embed files
var files embed.FS

// BuildOptions say how an image is made.
type BuildOptions struct {
	// Root is a checkout of the project, with its module files and hack/progress.sh.
	Root string
	// Cache is where programs, kernel and images are kept; springtide/node in the user's cache directory when empty.
	Cache string
	// Systemd makes the image of a machine whose init is systemd, as on most clusters: the kubelet and runc have it make their cgroups.
	Systemd bool
	// Progress receives a line for each step, and every half a minute of a long one.
	Progress func(string)
}

// Image is what machines start from: a kernel, an initramfs, and a disk with a snapshot in which containerd runs.
type Image struct {
	dir     string
	systemd bool
}

const (
	diskFile     = "disk.qcow2"
	snapshotFile = "snapshot.qcow2"
	kernelFile   = "vmlinuz"
	initramfs    = "initramfs.gz"
	// snapshotName is the name of the snapshot in its file.
	snapshotName = "runtime"
	diskSize     = "4G"
)

// The kernel's modules: what the initramfs loads to mount the disk, and what the disk has.
var (
	earlyModules = []string{"virtio_pci", "virtio_blk", "ext4", "crc32c_generic"}
	diskModules  = []string{"virtio_net", "overlay", "veth", "bridge", "zram", "bfq"}
)

// applets that the kubelet, containerd or stories call are links to busybox; so is every other one.

type builder struct {
	root, cache string
	systemd     bool
	progress    func(string)
}

// Build makes an image, or finds it in the cache. It takes minutes when everything is new and a second when nothing changed. One process
// builds at a time, others wait for it.
func Build(ctx context.Context, o BuildOptions) (Image, error) {
	if err := Missing(); err != nil {
		return Image{}, err
	}
	if o.Systemd {
		if err := MissingSystemd(); err != nil {
			return Image{}, err
		}
	}
	if o.Cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return Image{}, fmt.Errorf("find the user's cache directory: %w", err)
		}
		o.Cache = filepath.Join(cache, "springtide", "node")
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	b := &builder{root: o.Root, cache: o.Cache, systemd: o.Systemd, progress: o.Progress}
	for _, dir := range []string{"programs", "kernel", "image"} {
		if err := os.MkdirAll(filepath.Join(b.cache, dir), 0o755); err != nil {
			return Image{}, err
		}
	}
	unlock, err := lock(filepath.Join(b.cache, "lock"))
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	return b.build(ctx)
}

// AgentImage builds the node agent's image as an OCI archive for this machine's architecture, and returns its path. It is built each time; the Go
// cache makes that quick.
func AgentImage(ctx context.Context, o BuildOptions, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "./tools/images", "--arch", "amd64", "--out", dir, "springtide-agent")
	cmd.Dir = o.Root
	if err := lines(cmd, func(line string) { o.Progress("  " + line) }); err != nil {
		return "", fmt.Errorf("build the agent's image: %w", err)
	}
	return filepath.Join(dir, "springtide-agent.tar"), nil
}

// lock is exclusive among processes.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which lets the lock go
}

func (b *builder) build(ctx context.Context) (Image, error) {
	bins, err := b.buildPrograms(ctx)
	if err != nil {
		return Image{}, err
	}
	kernel, err := b.kernel(ctx)
	if err != nil {
		return Image{}, err
	}
	key, err := b.imageKey(ctx, bins, kernel)
	if err != nil {
		return Image{}, err
	}
	img := Image{dir: filepath.Join(b.cache, "image", key), systemd: b.systemd}
	if found(filepath.Join(img.dir, snapshotFile)) {
		return img, nil
	}
	// A build that was cut off leaves a part.
	if err := os.RemoveAll(img.dir); err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(img.dir, 0o755); err != nil {
		return Image{}, err
	}
	for _, s := range []struct {
		name string
		make func() error
	}{
		{"initramfs", func() error { return b.initramfs(ctx, img, kernel) }},
		{"disk", func() error { return b.disk(ctx, img, bins, kernel) }},
		{"snapshot: the node boots and loads its images", func() error { return snapshot(ctx, img) }},
	} {
		begin := time.Now()
		if err := s.make(); err != nil {
			return Image{}, fmt.Errorf("make the node's %s: %w", s.name, err)
		}
		b.progress(fmt.Sprintf("  %-90s %4.0fs", "node's "+s.name, time.Since(begin).Seconds()))
	}
	return img, prune(filepath.Dir(img.dir), keptVersions, keptBytes)
}

// imageKey names an image by all that is in it, and by the machine that its snapshot is of.
func (b *builder) imageKey(ctx context.Context, bins map[string]string, kernel string) (string, error) {
	qemu, err := output(ctx, "", "qemu-system-x86_64", "--version")
	if err != nil {
		return "", err
	}
	parts := []string{qemu, kernel, diskSize, strings.Join(diskModules, " "), strings.Join(arguments(Image{}, ports{}, MemoryMiB, false), " ")}
	for _, p := range programs("") {
		parts = append(parts, bins[p.name])
	}
	if b.systemd {
		version, err := output(ctx, "", systemctl, "--version")
		if err != nil {
			return "", err
		}
		parts = append(parts, version)
	}
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		parts = append(parts, path, string(data))
		return err
	})
	return digest(parts...)[:16], err
}

// kernel unpacks Debian's kernel into the cache; it is not installed, so nothing of this machine's boot changes. A kernel that is there
// stays until the cache is removed.
func (b *builder) kernel(ctx context.Context) (string, error) {
	dir := filepath.Join(b.cache, "kernel")
	had, err := filepath.Glob(filepath.Join(dir, "linux-image-*"))
	if err != nil {
		return "", err
	}
	if len(had) > 0 {
		return had[len(had)-1], nil
	}
	begin := time.Now()
	b.progress("  kernel for the node: 80 MB from Debian's mirror")
	text, err := output(ctx, dir, "apt-cache", "depends", "linux-image-amd64")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(strings.Fields(text), func(w string) bool { return strings.HasPrefix(w, "linux-image-") && w != "linux-image-amd64" })
	if i < 0 {
		return "", fmt.Errorf("apt-cache names no kernel that linux-image-amd64 depends on; to fix: apt-get update")
	}
	name := strings.Fields(text)[i]
	if _, err := output(ctx, dir, "apt-get", "download", "-q", name); err != nil {
		return "", err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(packages) == 0 {
		return "", errors.Join(fmt.Errorf("apt-get left no package of %s", name), err)
	}
	unpacked := filepath.Join(dir, "new")
	if err := os.RemoveAll(unpacked); err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, "dpkg-deb", "-x", packages[0], unpacked); err != nil {
		return "", err
	}
	version, err := kernelVersion(unpacked)
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, "depmod", "-b", unpacked, version); err != nil {
		return "", err
	}
	for _, p := range packages {
		if err := os.Remove(p); err != nil {
			return "", err
		}
	}
	b.progress(fmt.Sprintf("  %-90s %4.0fs", "kernel for the node", time.Since(begin).Seconds()))
	return filepath.Join(dir, name), os.Rename(unpacked, filepath.Join(dir, name))
}

func kernelVersion(kernel string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(kernel, "lib", "modules"))
	if err != nil || len(entries) != 1 {
		return "", errors.Join(fmt.Errorf("want one kernel in %s", kernel), err)
	}
	return entries[0].Name(), nil
}

// moduleFiles are the files of some modules and of all that they need, in the order in which they load.
func moduleFiles(ctx context.Context, kernel string, names []string) ([]string, error) {
	version, err := kernelVersion(kernel)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		text, err := output(ctx, "", "modprobe", "-d", kernel, "-S", version, "--show-depends", name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) >= 2 && fields[0] == "insmod" && !slices.Contains(out, fields[1]) {
				out = append(out, fields[1])
			}
		}
	}
	return out, nil
}

// initramfs holds busybox and what the disk needs; all other modules are on the disk.
func (b *builder) initramfs(ctx context.Context, img Image, kernel string) error {
	root := filepath.Join(img.dir, "initramfs")
	defer os.RemoveAll(root)
	for _, dir := range []string{"bin", "proc", "sys", "dev", "root", "modules.d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	early, err := moduleFiles(ctx, kernel, earlyModules)
	if err != nil {
		return err
	}
	var list strings.Builder
	copies := map[string]string{busybox: "bin/busybox"}
	for _, path := range early {
		to := "modules.d/" + filepath.Base(path)
		copies[path] = to
		list.WriteString("/" + to + "\n")
	}
	if err := copyFiles(root, copies); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "modules"), []byte(list.String()), 0o644); err != nil {
		return err
	}
	if err := copyEmbedded(root, map[string]string{"init": "init"}); err != nil {
		return err
	}
	vmlinuz, err := filepath.Glob(filepath.Join(kernel, "boot", "vmlinuz-*"))
	if err != nil || len(vmlinuz) != 1 {
		return errors.Join(fmt.Errorf("want one kernel in %s/boot", kernel), err)
	}
	if err := copyFile(vmlinuz[0], filepath.Join(img.dir, kernelFile)); err != nil {
		return err
	}
	return compress(ctx, root, filepath.Join(img.dir, initramfs))
}

// compress writes the tree as a compressed cpio archive, which the kernel unpacks. busybox writes it without being root.
func compress(ctx context.Context, root, out string) error {
	var names strings.Builder
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		names.WriteString(name + "\n")
		return err
	})
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	cmd := exec.CommandContext(ctx, busybox, "cpio", "-o", "-H", "newc")
	cmd.Dir, cmd.Stdin, cmd.Stdout = root, strings.NewReader(names.String()), zip
	return errors.Join(cmd.Run(), zip.Close(), file.Close())
}

// disk makes the root file system from a tree, without mounting anything.
func (b *builder) disk(ctx context.Context, img Image, bins map[string]string, kernel string) error {
	root := filepath.Join(img.dir, "root")
	defer os.RemoveAll(root)
	applets, err := b.tree(ctx, root, bins, kernel)
	if err != nil {
		return err
	}
	guest, err := os.ReadFile(bins["guest"])
	if err != nil {
		return err
	}
	if err := writeImages(root, "/images", guest, applets); err != nil {
		return err
	}
	raw := filepath.Join(img.dir, "disk.raw")
	defer os.Remove(raw)
	if _, err := output(ctx, "", "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0", "-d", root, raw, diskSize); err != nil {
		return err
	}
	_, err = output(ctx, "", "qemu-img", "convert", "-O", "qcow2", raw, filepath.Join(img.dir, diskFile))
	return err
}

// tree lays out the root file system and returns busybox' applets.
func (b *builder) tree(ctx context.Context, root string, bins map[string]string, kernel string) ([]string, error) {
	for _, dir := range []string{
		"bin", "dev", "proc", "sys", "run", "tmp", "etc/containerd", "etc/kubernetes", "etc/cni/net.d", "var/log", "var/lib", "var/cache",
		"lib/modules", "opt/cni/bin", "images", "root", "usr",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	text, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list busybox' applets: %w", err)
	}
	links := map[string]string{"sbin": "/bin", "usr/bin": "/bin", "usr/sbin": "/bin", "var/run": "/run"}
	var applets []string
	for _, a := range strings.Fields(string(text)) {
		if a != "busybox" {
			applets = append(applets, a)
			links["bin/"+a] = "busybox"
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	copies := map[string]string{busybox: "bin/busybox"}
	for name, path := range bins {
		to := "bin/" + name
		if strings.Contains(path, "/bridge/") || strings.Contains(path, "/loopback/") || strings.Contains(path, "/host-local/") {
			to = "opt/cni/bin/" + name
		}
		copies[path] = to
	}
	modules, err := moduleFiles(ctx, kernel, diskModules)
	if err != nil {
		return nil, err
	}
	version, err := kernelVersion(kernel)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(kernel, "lib", "modules", version)
	for _, path := range append(modules, filepath.Join(own, "modules.builtin"), filepath.Join(own, "modules.order")) {
		rel, err := filepath.Rel(kernel, path)
		if err != nil {
			return nil, err
		}
		copies[path] = rel
	}
	if err := copyFiles(root, copies); err != nil {
		return nil, err
	}
	if _, err := output(ctx, "", "depmod", "-b", root, version); err != nil {
		return nil, err
	}
	if err := copyEmbedded(root, map[string]string{
		"inittab": "etc/inittab", "rcS": "etc/rcS", "run-containerd": "etc/run-containerd", "run-kubelet": "etc/run-kubelet",
		"containerd.toml": "etc/containerd/config.toml", "10-lab.conflist": "etc/cni/net.d/10-lab.conflist",
	}); err != nil {
		return nil, err
	}
	if b.systemd {
		if err := addSystemd(ctx, root); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"hostname": "node\n", "hosts": "127.0.0.1 localhost\n", "passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n",
		"resolv.conf": "nameserver 10.0.2.3\n", "machine-id": "3f0e1d2c3b4a59687766554433221100\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return applets, nil
}

// copyFiles copies files to places below root.
func copyFiles(root string, copies map[string]string) error {
	for from, to := range copies {
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies one file with its mode; on file systems that can, it shares the blocks.
func copyFile(from, to string) error {
	said, err := exec.Command("cp", "--sparse=always", "--reflink=auto", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, said)
	}
	return nil
}

// copyEmbedded writes files of this package to places below root; scripts may be executed.
func copyEmbedded(root string, copies map[string]string) error {
	for from, to := range copies {
		data, err := files.ReadFile("files/" + from)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(root, to), data, mode); err != nil {
			return err
		}
	}
	return nil
}

// snapshot boots the disk up to the point where containerd runs and has its images, and saves that. It is made once: it knows of no API
// server, so it outlives every control plane. The kubelet is left out, since its connections do not survive.
func snapshot(ctx context.Context, img Image) error {
	dir := filepath.Join(img.dir, "boot")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m, err := start(ctx, img, Options{Dir: dir, MemoryMiB: MemoryMiB}, false)
	if err != nil {
		return err
	}
	defer func() { _ = m.Stop() }() // it has ended by itself when all went well
	if err := m.prepare(ctx); err != nil {
		return err
	}
	// Files that the kubelet and the first pod will read are put into the page cache, which is part of the snapshot.
	if _, err := m.Run(ctx, "cat /bin/kubelet /bin/runc /bin/containerd-shim-runc-v2 /opt/cni/bin/* >/dev/null; sync"); err != nil {
		return err
	}
	if said, err := m.Monitor(ctx, "savevm "+snapshotName); err != nil || strings.Contains(said, "Error") {
		return errors.Join(fmt.Errorf("QEMU answers to savevm: %s", said), err)
	}
	if err := m.quit(ctx); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, diskFile), filepath.Join(img.dir, snapshotFile))
}
