package world

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agent "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// parcel is an entry of a NodeShare; a socket has two cells, a machine four.
func parcel(loan string, epoch int64, holder, next string, cells ...int32) v1alpha1.ShareParcel {
	return v1alpha1.ShareParcel{LoanName: loan, LoanUID: "uid-" + loan, Epoch: epoch, Holder: holder, Next: next, Cells: cells}
}

func nodeShare(parcels ...v1alpha1.ShareParcel) *v1alpha1.NodeShare {
	return &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n", Generation: 1}, Spec: v1alpha1.NodeShareSpec{Parcels: parcels}}
}

func cores(n int64) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: fleet.Bytes(n) * fleet.GiB, Pods: 1}
}

// closed are marks behind which no pod lands.
var closed = fleet.NodeMarks{HolderTaint: true}

func TestNodeSide(t *testing.T) {
	machine := []int32{0, 1, 2, 3}
	for _, c := range []struct {
		name    string
		home    string
		share   *v1alpha1.NodeShare
		online  int64 // cores
		offline int64
		clean   bool
	}{
		{"a machine goes out, empty", onlinePool, nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), 0, 0, true},
		{"a machine goes out with one online pod", onlinePool, nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), 1, 0, false},
		{"a socket goes out, online fits the other", onlinePool, nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1)), 32, 0, true},
		{"a socket goes out, online does not fit the other", onlinePool, nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1)), 33, 0, false},
		{"the second socket goes out, online is still there", onlinePool,
			nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1), parcel("m", 1, offlinePool, "", 2, 3)), 1, 20, false},
		{"a machine comes home, empty", onlinePool, nodeShare(parcel("l", 2, offlinePool, onlinePool, machine...)), 0, 0, true},
		{"a machine comes home with one offline pod", onlinePool, nodeShare(parcel("l", 2, offlinePool, onlinePool, machine...)), 0, 1, false},
		{"a socket comes home, offline fits the other lent one", onlinePool,
			nodeShare(parcel("l", 2, offlinePool, onlinePool, 0, 1), parcel("m", 1, offlinePool, "", 2, 3)), 0, 32, true},
		{"a socket comes home, offline does not fit the other lent one", onlinePool,
			nodeShare(parcel("l", 2, offlinePool, onlinePool, 0, 1), parcel("m", 1, offlinePool, "", 2, 3)), 0, 33, false},
		{"a socket comes home beside online", onlinePool, nodeShare(parcel("l", 2, offlinePool, onlinePool, 0, 1)), 32, 0, true},
		{"an offline machine goes out", offlinePool, nodeShare(parcel("l", 1, offlinePool, onlinePool, machine...)), 0, 1, false},
		{"an offline socket goes out, offline fits the other", offlinePool, nodeShare(parcel("l", 1, offlinePool, onlinePool, 0, 1)), 0, 32, true},
		{"an offline machine comes home with an online pod", offlinePool, nodeShare(parcel("l", 2, onlinePool, offlinePool, machine...)), 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &side{uid: "uid-n"}
			var use machineUse
			if c.online > 0 {
				use = append(use, agent.Occupant{Name: "shop/web", Class: fleet.PodOnline, Ask: cores(c.online)})
			}
			if c.offline > 0 {
				use = append(use, agent.Occupant{Name: "shop/train", Class: fleet.PodOffline, Ask: cores(c.offline)})
			}
			if got := s.play(c.share, machineNow{c.home, false, closed, use}, noon); got[0].Clean {
				t.Fatal("clean at once: confining takes its time")
			}
			got := s.play(c.share, machineNow{c.home, false, closed, use}, noon.Add(confineTime))[0]
			if got.Clean != c.clean {
				t.Fatalf("clean = %v, want %v: %+v", got.Clean, c.clean, got)
			}
			if c.clean != (len(got.Occupants) == 0) || c.clean != (got.Time != nil) {
				t.Errorf("clean = %v with occupants %v and time %v", c.clean, got.Occupants, got.Time)
			}
		})
	}
}

// Behind marks that let a pod of the leaving side land nothing is clean, and the time counts from the marks on.
func TestNodeSideAsksForItsMarks(t *testing.T) {
	machine := []int32{0, 1, 2, 3}
	tainted := corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	node := func(label string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelOffline: label}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	prefers := tainted
	prefers.Effect = corev1.TaintEffectPreferNoSchedule
	for _, c := range []struct {
		name  string
		share *v1alpha1.NodeShare
		node  *corev1.Node
		clean bool
	}{
		{"out, behind the taint", nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), node("", tainted), true},
		{"out, without the taint", nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), node(""), false},
		{"out, with a taint that only asks", nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), node("", prefers), false},
		{"home, without the label", nodeShare(parcel("l", 2, offlinePool, onlinePool, machine...)), node("", tainted), true},
		{"home, with the label", nodeShare(parcel("l", 2, offlinePool, onlinePool, machine...)), node("true", tainted), false},
		{"out, of a node that is not seen", nodeShare(parcel("l", 1, onlinePool, offlinePool, machine...)), nil, false},
		{"home, of a node that is not seen", nodeShare(parcel("l", 2, offlinePool, onlinePool, machine...)), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &side{uid: "uid-n"}
			s.play(c.share, machineNow{onlinePool, false, marksOf(c.node), nil}, noon)
			if got := s.play(c.share, machineNow{onlinePool, false, marksOf(c.node), nil}, noon.Add(confineTime))[0].Clean; got != c.clean {
				t.Fatalf("clean = %v, want %v", got, c.clean)
			}
			if c.clean {
				return
			}
			shut := machineNow{onlinePool, false, closed, nil}
			if s.play(c.share, shut, noon.Add(confineTime))[0].Clean || !s.play(c.share, shut, noon.Add(2*confineTime))[0].Clean {
				t.Error("the time does not count from the marks on")
			}
		})
	}
}

// A pod that comes while the cells are being confined starts the wait again; a report once made holds for its epoch
// alone.
func TestNodeSideStartsAgain(t *testing.T) {
	s := &side{uid: "uid-n"}
	out := nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1, 2, 3))
	empty, taken := machineUse{}, machineUse{{Name: "shop/web", Class: fleet.PodOnline, Ask: cores(1)}}
	s.play(out, machineNow{onlinePool, false, closed, empty}, noon)
	s.play(out, machineNow{onlinePool, false, closed, taken}, noon.Add(confineTime/2))
	s.play(out, machineNow{onlinePool, false, closed, empty}, noon.Add(confineTime))
	if got := s.play(out, machineNow{onlinePool, false, closed, empty}, noon.Add(confineTime+confineTime/2)); got[0].Clean {
		t.Error("clean although the cells were free for half the time only")
	}
	if got := s.play(out, machineNow{onlinePool, false, closed, empty}, noon.Add(2*confineTime)); !got[0].Clean {
		t.Error("not clean after the cells were free for the whole time")
	}
	if got := s.play(out, machineNow{onlinePool, false, closed, taken}, noon.Add(3*confineTime)); !got[0].Clean {
		t.Error("a report must hold for its epoch")
	}
	back := nodeShare(parcel("l", 2, offlinePool, onlinePool, 0, 1, 2, 3))
	if got := s.play(back, machineNow{onlinePool, false, closed, machineUse{{Class: fleet.PodOffline, Ask: cores(1)}}}, noon.Add(4*confineTime)); got[0].Clean || got[0].Epoch != 2 {
		t.Errorf("%+v: an older epoch says nothing about the new one", got[0])
	}
}

// The machines' use counts online pods, strangers among them, apart from offline ones; fillers hold room without using
// it, and ended pods none.
func TestUses(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	for _, p := range []any{
		testPod("web", "ReplicaSet", "web-5f", on("n")),
		testPod("other", "", "", on("n")),
		testPod("train", "Job", "train", on("n")),
		testPod("done", "Job", "train", on("n"), inPhase("Succeeded")),
		testPod("waits", "ReplicaSet", "web-5f"),
	} {
		table.seen(p)
	}
	room := testPod("filler", "", "", on("n"))
	room.Labels = map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentFiller}
	table.seen(room)
	var got []string
	for _, o := range table.uses()["n"] {
		got = append(got, fmt.Sprintf("%s %s %d", o.Class, o.Name, o.Ask.CPU))
	}
	slices.Sort(got)
	if want := []string{"Offline shop/train 1000", "Online shop/other 1000", "Online shop/web 1000"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A share that is unchanged is reported once.
func TestReportsAreWrittenOnce(t *testing.T) {
	now := noon
	w := &World{table: newTestTable(&now), sides: map[string]*side{}, homes: map[string]string{"n": onlinePool}}
	w.table.seen(nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1, 2, 3)))
	w.table.seen((&machine{name: "n", pool: offlinePool}).node())
	if got := len(w.nodeSides(noon)); got != 1 {
		t.Fatalf("%d writes for a new share, want 1", got)
	}
	s := w.sides["n"]
	s.wrote, s.observed = []v1alpha1.ParcelReport{{LoanUID: "uid-l", Epoch: 1}}, 1 // as the write does
	if got := len(w.nodeSides(noon.Add(time.Second))); got != 0 {
		t.Errorf("%d writes while nothing changed, want none", got)
	}
	if got := len(w.nodeSides(noon.Add(confineTime))); got != 1 {
		t.Errorf("%d writes when the cells are clean, want 1", got)
	}
	other := nodeShare(parcel("l", 1, onlinePool, offlinePool, 0, 1, 2, 3))
	other.UID = types.UID("another")
	w.table.seen(other)
	w.nodeSides(noon.Add(2 * confineTime))
	if w.sides["n"] == s {
		t.Error("a share of another UID is another lock: what was reported for the old one is void")
	}
}
