// Package planetest gives tests a real control plane. It builds the lab's binaries once, into the checkout's bin/ and with
// the flags that make uses, so that a build by either serves both and an unchanged one costs under a second.
package planetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/lab/plane"
)

// Start runs a plane until the test ends and ends it then. Binaries and directory are filled in when o leaves them out;
// a test of `go test -short` is skipped, since a plane takes seconds.
func Start(t testing.TB, o plane.Options) *plane.Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane; run without -short")
	}
	if o.LabBinary == "" {
		o.LabBinary, o.KWOKBinary = Binaries(t)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Progress == nil {
		o.Progress = func(line string) { t.Log(line) }
	}
	p, err := plane.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("start the control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return p
}

// Node is a node of 64 cores and 256 GiB that kwok keeps ready.
func Node(name string, labels map[string]string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: map[string]string{plane.NodeAnnotation: plane.NodeAnnotationValue},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

var build struct {
	once sync.Once
	lab  string
	kwok string
	err  error
}

// Binaries builds springtide-lab and kwok, once a process, and returns their paths.
func Binaries(t testing.TB) (lab, kwok string) {
	t.Helper()
	build.once.Do(func() { build.lab, build.kwok, build.err = buildAll() })
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.lab, build.kwok
}

// buildAll builds under a lock: test processes of several packages run at the same time and share the output.
func buildAll() (lab, kwok string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", "", err
	}
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", "", fmt.Errorf("make the binaries' directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(bin, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", "", fmt.Errorf("open the build lock: %w", err)
	}
	defer lock.Close() // which also lets the lock go
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", "", fmt.Errorf("take the build lock: %w", err)
	}
	flags, err := os.ReadFile(filepath.Join(root, "hack", "lab-ldflags"))
	if err != nil {
		return "", "", fmt.Errorf("read the lab's link flags: %w", err)
	}
	lab, kwok = filepath.Join(bin, "springtide-lab"), filepath.Join(bin, plane.KWOK)
	if err := goBuild(root, lab, "./cmd/springtide-lab", "-ldflags", strings.TrimSpace(string(flags))); err != nil {
		return "", "", err
	}
	return lab, kwok, goBuild(root, kwok, "sigs.k8s.io/kwok/cmd/kwok")
}

// goBuild builds one package into one file.
func goBuild(root, out, pkg string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), pkg)...)
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said)
	}
	return nil
}

// moduleRoot is the nearest directory above the test's that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = up
	}
}
