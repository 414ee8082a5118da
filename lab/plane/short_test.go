package plane

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/internal/clock"
)

// TestShortKubeconfig: people get a path that fits a line, also next to a lab that runs and after one that was killed; every kubeconfig says where the lab's
// clock and store are; and the paths go with the plane.
func TestShortKubeconfig(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "t")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	begin := func() *Plane {
		dir := filepath.Join(t.TempDir(), "springtide-lab-1234567890", "springtide-plane-1234567890")
		pki, err := newPKI(dir, "https://127.0.0.1:1", &clock.Lab{Clock: "http://127.0.0.1:2?id=reader", Store: "sqlite:///x/springtide.db"})
		if err != nil {
			t.Fatal(err)
		}
		return &Plane{dir: dir, pki: pki, spawn: newSpawner()}
	}
	first, second, killed := begin(), begin(), begin()
	for i, p := range []*Plane{first, second, killed} {
		want := filepath.Join(tmp, []string{"springtide-lab", "springtide-lab2", "springtide-lab3"}[i])
		if got := p.ShortKubeconfig(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	raw, err := clientcmd.LoadFromFile(filepath.Join(tmp, "springtide-lab2"))
	if err != nil {
		t.Fatal(err)
	}
	said, _ := raw.Contexts[raw.CurrentContext].Extensions[clock.LabExtension].(*runtime.Unknown)
	if want := `{"clock":"http://127.0.0.1:2?id=reader","store":"sqlite:///x/springtide.db"}`; said == nil || string(said.Raw) != want {
		t.Errorf("the context says %+v, want %s", said, want)
	}
	if err := os.RemoveAll(killed.dir); err != nil {
		t.Fatal(err)
	}
	if got := begin().ShortKubeconfig(); filepath.Base(got) != "springtide-lab3" {
		t.Errorf("the name of a lab that was killed is not used again: %s", got)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(tmp, "springtide-lab")); !os.IsNotExist(err) {
		t.Errorf("the path is left when the plane has ended: %v", err)
	}
	if _, err := os.Stat(filepath.Join(tmp, "springtide-lab2")); err != nil {
		t.Errorf("the path of another lab went with it: %v", err)
	}
}
