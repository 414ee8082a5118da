package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/springtide/springtide/lab/judge"
)

// server lists and watches pods as an API server does that can be taken away.
type server struct {
	answers chan func() (*corev1.PodList, error) // one for each list, in order
	streams chan *apiwatch.FakeWatcher           // one for each watch, in order
}

func (s *server) kind() *watched {
	return &watched{
		name: "pods", kind: &judge.Pod{}, convert: pod,
		list: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			select {
			case answer := <-s.answers:
				list, err := answer()
				if err != nil {
					return nil, err
				}
				return list, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		watch: func(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
			select {
			case stream := <-s.streams:
				return stream, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

func podNamed(name, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)}}
}

// TestAWatchThatIsCutListsAgain: the judge's eye says that it is blind from the cut to the next list, whatever fails between the two, and the list brings the
// objects under their UIDs.
func TestAWatchThatIsCutListsAgain(t *testing.T) {
	s := &server{make(chan func() (*corev1.PodList, error), 9), make(chan *apiwatch.FakeWatcher, 9)}
	has := func(pods ...*corev1.Pod) func() (*corev1.PodList, error) {
		return func() (*corev1.PodList, error) {
			l := &corev1.PodList{}
			for _, p := range pods {
				l.Items = append(l.Items, *p)
			}
			return l, nil
		}
	}
	away := func() (*corev1.PodList, error) { return nil, errors.New("connection refused") }
	facts := make(chan any, 100)
	go s.kind().run(t.Context(), facts)
	next := func() string {
		t.Helper()
		select {
		case f := <-facts:
			switch f := f.(type) {
			case state:
				return fmt.Sprint("broken ", f.broken)
			case judge.Whole:
				out := "list"
				for _, o := range f.Objects {
					out += " " + o.(*judge.Pod).UID
				}
				return out
			case *judge.Pod:
				return "pod " + f.UID
			case judge.Gone:
				return "gone " + f.Object.(*judge.Pod).UID
			}
			return fmt.Sprintf("%T", f)
		case <-time.After(time.Minute):
			t.Fatal("nothing is seen")
			return ""
		}
	}
	want := func(all ...string) {
		t.Helper()
		for _, w := range all {
			if got := next(); got != w {
				t.Fatalf("%q, want %q", got, w)
			}
		}
	}
	first := apiwatch.NewFake()
	s.answers <- has(podNamed("a", "1"))
	s.streams <- first
	want("list 1", "broken false")
	first.Add(podNamed("b", "2"))
	first.Delete(podNamed("a", "1"))
	want("pod 2", "gone 1")

	first.Stop() // the API server goes away
	want("broken true")
	s.answers <- away
	want("broken true")
	s.answers <- away
	want("broken true")
	second := apiwatch.NewFake()
	s.answers <- has(podNamed("b", "3")) // of the same name
	s.streams <- second
	want("list 3", "broken false")

	second.Error(&metav1.Status{Code: http.StatusGone})
	want("broken true")
	s.answers <- has()
	want("list", "broken false")
}

// TestConversionsKeepTheUID: what is compared with what it was carries its UID.
func TestConversionsKeepTheUID(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}
	for _, got := range []string{
		node(&corev1.Node{ObjectMeta: meta}).(*judge.Node).UID,
		pod(&corev1.Pod{ObjectMeta: meta}).(*judge.Pod).UID,
		deployment(&appsv1.Deployment{ObjectMeta: meta}).(*judge.Deployment).UID,
	} {
		if got != "u" {
			t.Errorf("UID %q", got)
		}
	}
}

// TestTheAuditLogIsReadAsItGrows: a line that is half written is read once it is whole, and no line twice; what is no request is passed over.
func TestTheAuditLogIsReadAsItGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := &audit{path: path}
	var seen []string
	read := func() string {
		t.Helper()
		seen = nil
		if err := a.read(func(r judge.Request) {
			seen = append(seen, fmt.Sprint(r.User, " ", r.Verb, " ", r.Resource, " ", r.Ref, " ", r.Code))
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(seen, "; ")
	}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); got != "" {
		t.Errorf("before the first line: %s", got)
	}
	line := `{"auditID":"1","verb":"create","user":{"username":"c"},"objectRef":{"resource":"pods","subresource":"eviction","namespace":"lab","name":"w1"},"responseStatus":{"code":429}}` + "\n"
	write(line + "no JSON\n{}\n" + line[:30])
	if got := read(); got != "c create pods/eviction lab/w1 429" {
		t.Errorf("a whole line and a half: %s", got)
	}
	write(line[30:])
	if got := read(); got != "c create pods/eviction lab/w1 429" {
		t.Errorf("the other half: %s", got)
	}
	if got := read(); got != "" {
		t.Errorf("nothing new: %s", got)
	}
}

// TestTheSource: a source is fine when it answers with a sample of the last minutes, and nothing else is.
func TestTheSource(t *testing.T) {
	now := time.Unix(1_770_000_000, 0)
	vector := func(value string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1770000000,"` + value + `"]}]}}`
	}
	for _, c := range []struct {
		name, body string
		code       int
		fine       bool
	}{
		{"a new sample", vector("1769999990"), 200, true},
		{"a sample of six minutes ago", vector("1769999640"), 200, false},
		{"no number", vector("NaN"), 200, false},
		{"nothing", `{"status":"success","data":{"resultType":"vector","result":[]}}`, 200, false},
		{"an error", vector("1769999990"), 503, false},
		{"a login page", "<html>please log in</html>", 200, false},
		{"an empty answer", "", 200, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.code)
			_, _ = w.Write([]byte(c.body))
		}))
		fine, says := askSource(t.Context(), s.URL, now)
		s.Close()
		if fine != c.fine || fine == (says != "") {
			t.Errorf("%s: fine %v, says %q", c.name, fine, says)
		}
	}
	if fine, _ := askSource(t.Context(), "http://127.0.0.1:1", now); fine {
		t.Error("a source that is not there is fine")
	}
}

// TestALeaseIsMissedByTheWall: a lease that no controller renewed for a minute is missed, but for the time in which none could be renewed.
func TestALeaseIsMissedByTheWall(t *testing.T) {
	l := &lease{}
	if !l.held() {
		t.Error("a lease is missed before the first one came")
	}
	l.excuse()
	if !l.last.IsZero() {
		t.Error("an outage before the first lease stands for one")
	}
	l.seen(renewed{holder: "a", at: time.Unix(1, 0)})
	l.last = l.last.Add(-leaderGone - time.Second)
	l.seen(renewed{holder: "a", at: time.Unix(1, 0)}) // the same renewal again, as a new list shows it
	if l.held() {
		t.Error("an old lease is not missed")
	}
	l.excuse()
	if !l.held() {
		t.Error("a lease that no component could renew is missed")
	}
	l.last = l.last.Add(-leaderGone - time.Second)
	l.seen(renewed{holder: "b", at: time.Unix(2, 0)})
	if !l.held() {
		t.Error("a lease that was renewed is missed")
	}
}
