package notice

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestShow(t *testing.T) {
	dir := t.TempDir()
	b := Open(dir)
	for _, c := range []struct {
		text    string
		changed bool
	}{{`{"epoch":1}`, true}, {`{"epoch":1}`, false}, {`{"epoch":12}`, true}, {"", true}, {"", false}} {
		changed, err := b.Show(c.text)
		if err != nil || changed != c.changed {
			t.Fatalf("%q: %v, %v", c.text, changed, err)
		}
		data, err := os.ReadFile(filepath.Join(dir, FileNotice))
		if c.text == "" {
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the notice is still there: %v", err)
			}
			continue
		}
		info, _ := os.Stat(filepath.Join(dir, FileNotice))
		if string(data) != c.text || info.Mode().Perm() != 0o644 {
			t.Errorf("%q is shown as %q with mode %s", c.text, data, info.Mode())
		}
	}
	if _, err := Open(filepath.Join(dir, "gone")).Show("x"); err == nil {
		t.Error("a volume that is not there took a notice")
	}
}

// TestPodCannotLeadOutside: links that a pod puts into its volume lead neither writes nor reads elsewhere, and a pipe holds nothing up.
func TestPodCannotLeadOutside(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	write(t, outside, "7")
	for _, name := range []string{FileNotice, FileAck, ".notice.new"} {
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b := Open(dir)
	if said := b.Read(FileAck); said.Text != "" {
		t.Errorf("the link's target is read as %q", said.Text)
	}
	if _, err := b.Show("notice"); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(outside); string(data) != "7" {
		t.Errorf("the link's target became %q", data)
	}
	if info, err := os.Lstat(filepath.Join(dir, FileNotice)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the notice is %v, %v", info.Mode(), err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, FileHeartbeat), 0o666); err != nil {
		t.Fatal(err)
	}
	if said := b.Read(FileHeartbeat); said.Text != "" {
		t.Errorf("a pipe says %q", said.Text)
	}
	write(t, filepath.Join(dir, FileCheckpoint), strings.Repeat("x", longest+1))
	if said := b.Read(FileCheckpoint); said.Text != "" {
		t.Errorf("an endless answer says %q", said.Text)
	}
	if err := os.Remove(filepath.Join(dir, FileNotice)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, FileNotice), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Show("notice"); err == nil {
		t.Error("a directory in the notice's place is no error")
	}
}

func TestRelay(t *testing.T) {
	dir := t.TempDir()
	b := Open(dir)
	var r Relay
	var got []string
	fail := true
	take := func(file, text string) error {
		if fail {
			return errors.New("the API server is away")
		}
		got = append(got, file+"="+text)
		return nil
	}
	write(t, filepath.Join(dir, FileAck), "4\n")
	if err := r.Carry(b, []string{FileAck, FileHeartbeat}, take); err == nil {
		t.Error("what was not taken is no error")
	}
	fail = false
	for range 2 {
		if err := r.Carry(b, []string{FileAck, FileHeartbeat}, take); err != nil {
			t.Fatal(err)
		}
	}
	// The same text written again answers another notice.
	if err := os.Chtimes(filepath.Join(dir, FileAck), time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := r.Carry(b, []string{FileAck, FileHeartbeat}, take); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != "ack=4 ack=4" {
		t.Errorf("carried %q", got)
	}
}

func TestParse(t *testing.T) {
	if n, err := Parse(`{"loan":"l","epoch":4,"deadline":"2026-03-02T12:00:00Z"}`); err != nil || n.Epoch != 4 || n.Loan != "l" || n.Deadline.IsZero() {
		t.Errorf("%+v, %v", n, err)
	}
	for _, text := range []string{"", "{", "{}", `{"loan":"l"}`, `{"loan":"l","epoch":"4"}`} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is a notice", text)
		}
	}
	for text, fine := range map[string]bool{
		`{"http":{"port":8080,"path":"/save"}}`: true, `{"exec":["/bin/save"],"container":"main"}`: true, `{"http":{"port":9090,"path":"/save"}}`: false,
		`{"http":{"port":8080,"path":"save"}}`: false, `{}`: false, `{"exec":["x"],"http":{"port":8080,"path":"/"}}`: false, `{"url":"http://elsewhere"}`: false, `x`: false,
	} {
		if _, err := ParseHook(text, []int32{8080}); (err == nil) != fine {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestHTTPHook: the pod gets the notice; a redirect to another address is not followed, and a pod without an address of its own is refused.
func TestHTTPHook(t *testing.T) {
	var got string
	elsewhere := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere = true }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		body := make([]byte, 64)
		n, _ := r.Body.Read(body)
		got = r.Method + " " + r.URL.String() + " " + string(body[:n])
	}))
	defer s.Close()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	h := Hook{HTTP: &HTTPHook{Port: int32(n), Path: "/save?now=1"}}
	if err := h.Call(t.Context(), Pod{IP: host}, "notice", nil); err != nil || got != "POST /save?now=1 notice" {
		t.Errorf("%q, %v", got, err)
	}
	h.HTTP.Path = "/away"
	if err := h.Call(t.Context(), Pod{IP: host}, "notice", nil); err == nil || elsewhere {
		t.Errorf("a redirect: %v, followed %v", err, elsewhere)
	}
	h.HTTP.Path = "//" + other.Listener.Addr().String() + "/"
	if err := h.Call(t.Context(), Pod{IP: host}, "notice", nil); err == nil || elsewhere {
		t.Errorf("a path with a host: %v, called %v", err, elsewhere)
	}
	if err := h.Call(t.Context(), Pod{}, "notice", nil); err == nil {
		t.Error("a pod without an address was called")
	}
}

func TestExecHook(t *testing.T) {
	h := Hook{Exec: []string{"/bin/save"}}
	var ran string
	run := func(_ context.Context, container string, command []string) error {
		ran = container + " " + strings.Join(command, " ")
		return nil
	}
	if err := h.Call(t.Context(), Pod{Containers: map[string]string{"main": "id1"}}, "", run); err != nil || ran != "id1 /bin/save" {
		t.Errorf("%q, %v", ran, err)
	}
	two := Pod{Containers: map[string]string{"main": "id1", "log": "id2"}}
	if err := h.Call(t.Context(), two, "", run); err == nil {
		t.Error("one of two containers was chosen")
	}
	h.Container = "log"
	if err := h.Call(t.Context(), two, "", run); err != nil || ran != "id2 /bin/save" {
		t.Errorf("%q, %v", ran, err)
	}
	if err := h.Call(t.Context(), two, "", nil); err == nil || !strings.Contains(err.Error(), "to fix") {
		t.Errorf("without the runtime's socket: %v", err)
	}
}

// TestHookLeavesNothingOpen: each call of a hook closes its connection, whatever the pod answers and however much.
func TestHookLeavesNothingOpen(t *testing.T) {
	var open atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	s.Start()
	defer s.Close()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	h := Hook{HTTP: &HTTPHook{Port: int32(n), Path: "/"}}
	for range 8 {
		if err := h.Call(t.Context(), Pod{IP: host}, "notice", nil); err == nil {
			t.Fatal("an error of the pod is a success")
		}
	}
	for deadline := time.Now().Add(20 * time.Second); open.Load() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open", open.Load())
		}
	}
}
