package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
)

// TestPodsAreKnownByTheirWholeUID: a pod whose UID begins with another's is not taken for it.
func TestPodsAreKnownByTheirWholeUID(t *testing.T) {
	b := newBench(t)
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 1000)
	job := b.pod("job", shape.OfflineSide, shape.Shared, 1000)
	job.UID = web.UID + "-2"
	b.group(b.path(job))
	b.lend("batch", "", 1, 2, 3)
	b.settle()
	b.cycle()
	if got := b.read(b.path(&web), "cpuset.cpus"); got != "0-7" {
		t.Errorf("web has %s", got)
	}
	if got := b.read(b.path(job), "cpuset.cpus"); got != "8-15" {
		t.Errorf("job has %s", got)
	}
}

// TestEmptyFacts: facts that lack what they may lack are no crash, and change nothing.
func TestEmptyFacts(t *testing.T) {
	b := newBench(t)
	b.group("kubepods/podlonely")
	b.settle()
	for _, f := range []*Facts{
		{},
		{Node: NodeFacts{UID: "u"}, Share: &v1alpha1.NodeShare{}},
		{Node: NodeFacts{UID: "u"}, Pods: []PodFacts{{}, {UID: "lonely"}}},
		{Node: NodeFacts{UID: "u"}, Share: &v1alpha1.NodeShare{Spec: v1alpha1.NodeShareSpec{Parcels: []v1alpha1.ShareParcel{{Cells: []int32{77}, Holder: "gone", Next: "gone too"}, {}}}}},
	} {
		out, err := b.Cycle(t.Context(), f, b.now)
		if err != nil {
			t.Errorf("%+v: %v", f, err)
			continue
		}
		for _, r := range out.Parcels {
			if r.Clean {
				t.Errorf("%+v is clean", f)
			}
		}
		for _, w := range out.Writes {
			if w.File == "cpuset.cpus" {
				t.Errorf("%+v: %+v", f, w)
			}
		}
	}
}

// TestOneFailureStopsNoOther: a cgroup that cannot be written, and a share whose pools are gone, leave the rest of the machine confined.
func TestOneFailureStopsNoOther(t *testing.T) {
	b := newBench(t)
	bad := *b.pod("a-bad", shape.OnlineSide, shape.Shared, 1000)
	good := *b.pod("z-good", shape.OnlineSide, shape.Shared, 1000)
	b.lend("batch", "", 1, 2, 3)
	// A file of procfs refuses every write, as a kernel refuses a value.
	refuse := filepath.Join(b.roots.Cgroup, b.path(&bad), "cpuset.cpus")
	if err := os.Remove(refuse); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/version", refuse); err != nil {
		t.Fatal(err)
	}
	out, err := b.Cycle(t.Context(), b.facts, b.now)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, e := range out.Entries {
		if e.Error != "" {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no write failed")
	}
	if got := b.read(b.path(&good)+"/z-good-c", "cpuset.cpus"); got != "0-7" {
		t.Errorf("the other pod has %s", got)
	}
}

// TestUnknownCellsAreAll: a cgroup of which the kernel does not say where it runs may be on any cell, and holds up every parcel.
func TestUnknownCellsAreAll(t *testing.T) {
	b := newBench(t)
	if err := b.open(b.facts); err != nil {
		t.Fatal(err)
	}
	if got := b.confinedTo("kubepods/no-such-pod"); len(got) == 0 || len(got) != len(b.topology.AllCells()) {
		t.Errorf("an unreadable cgroup is on cells %v", got)
	}
}

// TestACutJournal: after a crash, or where the disk was full, the last line of the journal may be cut. The text written
// after it is read again all the same.
func TestACutJournal(t *testing.T) {
	entries := []Entry{{Write: shape.Write{Path: "kubepods", File: "memory.low", New: "1"}}, {Write: shape.Write{Path: "kubepods", File: "memory.min", New: "1"}}}
	for _, cut := range []string{`{"at":"2026-01-01T00:00:00Z","path":"kubepods/besteffort","fi`, "\x00\x00\x00", "{}", "{}\n", ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journalFile), []byte(cut), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.append(entries[:1]), j.append(entries[1:]), j.close()); err != nil {
			t.Fatal(err)
		}
		out, _, err := writtenFiles(filepath.Join(dir, journalFile))
		if err != nil || !out["kubepods/memory.low"] || !out["kubepods/memory.min"] {
			t.Errorf("after %q: %v, %v", cut, out, err)
		}
		data, err := os.ReadFile(filepath.Join(dir, journalFile))
		if lines := strings.Count(strings.TrimPrefix(string(data), cut), "\n"); err != nil || lines > 3 {
			t.Errorf("after %q: %d lines, %v", cut, lines, err)
		}
	}
}

// TestTheLastShareOfAnotherNode: facts on disk that are of another node, or of none, are not enforced, and the error names both nodes. The facts of the API server
// end that.
func TestTheLastShareOfAnotherNode(t *testing.T) {
	for name, write := range map[string]func(b *bench) error{
		"another node": func(b *bench) error { b.facts.Node.Name = "other"; return SaveFacts(b.roots.State, b.facts) },
		"no name":      func(b *bench) error { b.facts.Node.Name = ""; return SaveFacts(b.roots.State, b.facts) },
		"null": func(b *bench) error {
			return os.WriteFile(filepath.Join(b.roots.State, factsFile), []byte("null"), 0o600)
		},
		"nothing": func(b *bench) error {
			return os.WriteFile(filepath.Join(b.roots.State, factsFile), []byte("{}"), 0o600)
		},
	} {
		b := newBench(t)
		web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
		b.lend("batch", "", 1, 2, 3)
		if err := write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Cycle(t.Context(), nil, b.now); err == nil || !strings.Contains(err.Error(), `this is node "m"`) {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.read(b.path(&web), "cpuset.cpus"); got != "" {
			t.Errorf("%s: a pod was confined to %s", name, got)
		}
		b.facts.Node.Name = "m"
		b.cycle()
		if got := b.read(b.path(&web), "cpuset.cpus"); got != "0-7" {
			t.Errorf("%s: after the API server answered the pod has %q", name, got)
		}
		if out, err := b.Cycle(t.Context(), nil, b.now); err != nil || out == nil {
			t.Errorf("%s: its own facts are not enforced: %v", name, err)
		}
	}
}

// TestChargesOfTheFuture: an eviction that was charged while the clock was ahead counts from now on, and not for ever.
func TestChargesOfTheFuture(t *testing.T) {
	b := newBench(t)
	b.lend("web", "", 1, 2, 3)
	for _, at := range []time.Time{b.now.Add(-time.Minute), b.now.Add(time.Hour), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)} {
		b.facts.Share.Status.Evictions = append(b.facts.Share.Status.Evictions, v1alpha1.AgentEviction{Owner: "x", Time: metav1.NewTime(at)})
	}
	b.cycle()
	var got []time.Duration
	for _, e := range b.guard.charged {
		got = append(got, b.now.Sub(e.Time.Time))
	}
	if want := []time.Duration{time.Minute + time.Second, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("the charges are %v old, want %v", got, want)
	}
}
