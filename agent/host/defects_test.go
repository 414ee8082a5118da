package host

import (
	"os"
	"path/filepath"
	"testing"

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
