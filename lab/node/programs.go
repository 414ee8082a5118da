package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one executable of the guest.
type program struct {
	name    string
	module  string // tools/MODULE.mod; the project's own go.mod when empty
	pkg     string
	cgo     bool
	flags   []string
	comment string // what a first build takes
}

// own says that the program is the project's.
func (p *program) own() bool { return strings.HasPrefix(p.pkg, "./") }

// Versions of the programs. Kubernetes' is in go.mod, the others are in the module files.
const (
	containerdPackage = "github.com/containerd/containerd/v2/cmd/"
	cniPackage        = "github.com/containernetworking/plugins/plugins/"
)

// programs are what runs in the guest. All are static, since the disk has no C library.
//
// The kubelet is built from the project's own go.mod and with cgo, as the lab's binary is: so it shares what that one compiled, and links in
// under a minute instead of compiling for a quarter of an hour. runc's first stage is C, and its seccomp profile needs libseccomp.
func programs(kubernetesFlags string) []program {
	small := []string{"-ldflags", "-s -w"}
	out := []program{
		{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet", cgo: true,
			flags:   []string{"-ldflags", kubernetesFlags + " -linkmode external -extldflags -static"},
			comment: "a minute when the lab is built, 15 when not"},
		{name: "runc", module: "runc", pkg: "github.com/opencontainers/runc", cgo: true,
			flags:   []string{"-tags", "seccomp,netgo,osusergo", "-ldflags", "-s -w -extldflags -static"},
			comment: "a minute when new"},
	}
	for _, name := range []string{"containerd", "ctr", "containerd-shim-runc-v2"} {
		out = append(out, program{name: name, module: "containerd", pkg: containerdPackage + name, flags: small, comment: "minutes when new"})
	}
	for _, path := range []string{"main/bridge", "main/loopback", "ipam/host-local"} {
		out = append(out, program{name: filepath.Base(path), module: "cni", pkg: cniPackage + path, flags: small, comment: "seconds"})
	}
	return append(out, program{name: "guest", pkg: "./lab/node/guest", flags: small, comment: "seconds"})
}

// buildPrograms builds what the cache does not have and returns the path of each program.
func (b *builder) buildPrograms(ctx context.Context) (map[string]string, error) {
	kubernetesFlags, err := os.ReadFile(filepath.Join(b.root, "hack", "lab-ldflags"))
	if err != nil {
		return nil, err
	}
	toolchain, err := output(ctx, b.root, "go", "version")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, p := range programs(strings.TrimSpace(string(kubernetesFlags))) {
		if paths[p.name], err = b.buildProgram(ctx, p, toolchain); err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
	}
	return paths, nil
}

func (b *builder) buildProgram(ctx context.Context, p program, toolchain string) (string, error) {
	mod := filepath.Join(b.root, "go.mod")
	if p.module != "" {
		mod = filepath.Join(b.root, "tools", p.module+".mod")
	}
	sources := []string{mod, strings.TrimSuffix(mod, ".mod") + ".sum"}
	if p.own() {
		// The guest program needs nothing but the standard library.
		var err error
		if sources, err = filepath.Glob(filepath.Join(b.root, p.pkg, "*.go")); err != nil {
			return "", err
		}
	}
	inputs := []string{toolchain, p.pkg, fmt.Sprint(p.cgo, p.flags)}
	for _, name := range sources {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		inputs = append(inputs, string(data))
	}
	dir := filepath.Join(b.cache, "programs", p.name)
	path := filepath.Join(dir, digest(inputs...)[:16], p.name)
	if found(path) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	flags, err := b.moduleFlags(p, mod)
	if err != nil {
		return "", err
	}
	args := append([]string{filepath.Join(b.root, "hack", "progress.sh"), p.name + " for the node (" + p.comment + ")", "go", "build", "-p", "2", "-o", path + ".new"}, p.flags...)
	cmd := exec.CommandContext(ctx, "bash", append(args, p.pkg)...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GOFLAGS="+flags, "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[p.cgo])
	if err := lines(cmd, b.progress); err != nil {
		return "", err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", err
	}
	return path, prune(dir, keptVersions, keptBytes)
}

// moduleFlags say which module file a build reads. The kubelet needs a few modules that the project does not, so it is built from a copy of
// go.mod, to which the go command may add them: the versions of all others stay those of the lab.
func (b *builder) moduleFlags(p program, mod string) (string, error) {
	const always = "-buildvcs=false"
	switch {
	case p.module != "":
		return always + " '-modfile=" + mod + "'", nil
	case p.own():
		return always, nil
	}
	own := filepath.Join(b.cache, "programs", p.name+".mod")
	for _, suffix := range []string{".mod", ".sum"} {
		data, err := os.ReadFile(strings.TrimSuffix(mod, ".mod") + suffix)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(strings.TrimSuffix(own, ".mod")+suffix, data, 0o644); err != nil {
			return "", err
		}
	}
	return always + " -mod=mod '-modfile=" + own + "'", nil
}

// digest is a name for what was made of the parts.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d\n%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
