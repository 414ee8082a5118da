package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/lab/clock"
)

// TestClockOfTheKubeconfig: commands use the clock that the kubeconfig's context names, and bring stamps of the wall into it. A kubeconfig of any other
// cluster says nothing and leaves this machine's clock; a lab that has ended is named.
func TestClockOfTheKubeconfig(t *testing.T) {
	virtual := time.Date(2025, 6, 2, 6, 0, 0, 0, time.UTC)
	server, err := clock.Listen(virtual)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	time.Sleep(150 * time.Millisecond) // an anchor needs a tenth of a second
	server.Advance(virtual.Add(4 * time.Hour))
	base := `apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: plain, context: {cluster: c, user: u}}
- {name: other, context: {cluster: c, user: u, extensions: [{name: context_info, extension: {provider: minikube.sigs.k8s.io}}]}}
- {name: lab, context: {cluster: c, user: u, extensions: [{name: lab.springtide.dev, extension: {clock: "URL", store: "sqlite:///x.db"}}]}}
`
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(strings.Replace(base, "URL", server.URL("reader"), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, context := range []string{"plain", "other"} {
		c, err := Connect(&Options{Kubeconfig: file, context: context})
		if err != nil {
			t.Fatal(err)
		}
		if away := time.Since(c.Now()); away > time.Minute || c.Store != "" || !c.At(began).Equal(began) {
			t.Errorf("context %s: now is %s ago, store %q", context, away, c.Store)
		}
	}
	for _, context := range []string{"", "lab"} { // the current one, and by name
		c, err := Connect(&Options{Kubeconfig: file, context: context})
		if err != nil {
			t.Fatal(err)
		}
		if want := virtual.Add(4 * time.Hour); !c.Now().Equal(want) || c.Store != "sqlite:///x.db" {
			t.Errorf("context %q: now %s, want %s; store %q", context, c.Now(), want, c.Store)
		}
		if got := c.At(began.Add(-time.Hour)); !got.Equal(virtual) {
			t.Errorf("a stamp before the lab began is %s, want %s", got, virtual)
		}
		if got := c.At(time.Now()); !got.Equal(virtual.Add(4 * time.Hour)) {
			t.Errorf("a stamp of this moment is %s", got)
		}
		if away := time.Since(c.Wall()); away > time.Minute {
			t.Errorf("the wall is %s away", away)
		}
	}
	if server.Led() {
		t.Error("the lab counts the reader as a controller that it waits for")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(&Options{Kubeconfig: file}); err == nil || !strings.Contains(err.Error(), "has it ended?") {
		t.Errorf("a lab that has ended: %v", err)
	}
}
