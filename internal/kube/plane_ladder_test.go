//go:build plane

package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// machineOf makes two pools, and a machine at home in one of them.
func (p *plane) machineOf(t *testing.T, id, home string) fleet.Node {
	t.Helper()
	n := kubetest.Node("n-"+id, map[string]string{"pool": home + "-" + id})
	n.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}
	n.Status.Capacity = n.Status.Allocatable
	if _, err := p.core.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.create(t, object.GVRPools, kubetest.Pool("web-"+id, "Online", map[string]string{"pool": "web-" + id}))
	p.create(t, object.GVRPools, kubetest.Pool("batch-"+id, "Offline", map[string]string{"pool": "batch-" + id}))
	var machine fleet.Node
	until(t, "the machine", func() bool {
		for _, x := range p.snapshot(t).Nodes {
			if x.Name == n.Name && x.Ready && x.Pool != "" {
				machine = x
			}
		}
		return machine.ID != ""
	})
	return machine
}

// gone plays the kubelet at the end of a pod.
func (p *plane) gone(t *testing.T, name string, id fleet.UID) {
	t.Helper()
	var none int64
	if err := p.core.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Log(err) // the plane's own was faster
	}
	until(t, "the pod to be gone", func() bool { return find(p.snapshot(t), id) == nil })
}

func (p *plane) begin(t *testing.T, l fleet.Loan, marks fleet.NodeMarks) fleet.Loan {
	t.Helper()
	p.must(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveBegin, Before: l, After: l, Node: l.NodeName}},
		Marks: []planner.Mark{{Node: l.NodeName, ID: l.Node, Want: marks}}})
	return *p.snapshot(t).Loan(l.ID)
}

func (p *plane) marks(t *testing.T, m fleet.Node, want fleet.NodeMarks) {
	t.Helper()
	p.must(t, planner.Plan{Marks: []planner.Mark{{Node: m.Name, ID: m.ID, Want: want}}})
	if got := p.snapshot(t).Node(m.ID).Marks; got != want {
		t.Fatalf("marks = %+v, want %+v", got, want)
	}
}

// TestPlaneLadder climbs the ladder of a recall with a pod that does not end, to the write-off and home again.
func TestPlaneLadder(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	ctx, id := t.Context(), rand.String(5)
	m := p.machineOf(t, id, "web")
	tainted := fleet.NodeMarks{HolderTaint: true, KeepNode: true}
	l := p.begin(t, fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: m.ID, NodeName: m.Name, Kind: fleet.KindNode, Cells: []int{0}, Capacity: m.Allocatable,
		From: fleet.PoolID("web-" + id), To: fleet.PoolID("batch-" + id)}.Begin(time.Now(), reason.Said("ebb")), tainted)
	p.reportClean(t, m.Name, 1)
	p.step(t, planner.MoveLend, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) })
	pod := p.offlinePod(t, id, m.Name)
	if _, err := p.core.CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/stuck"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(time.Hour)
	noticed := p.step(t, planner.MoveRecall, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Recall(time.Now(), time.Now().Add(16*time.Second), due, reason.Said("flood"))
	})
	ref := planner.PodRef{Name: fleet.Name{Namespace: "default", Name: pod.Name}, ID: fleet.UID(pod.UID)}
	p.must(t, planner.Plan{Notices: []planner.Notice{{Pod: ref, Loan: l.ID, Epoch: noticed.Epoch, Deadline: noticed.Deadline}}})
	p.ack(t, pod.Name, noticed.Epoch)
	until(t, "the acknowledgement", func() bool { x := find(p.snapshot(t), ref.ID); return x != nil && x.AckEpoch == noticed.Epoch })
	killAt := time.Now().Add(2 * time.Second)
	p.step(t, planner.MoveDrain, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		after, err := l.Drain(time.Now(), true)
		if err != nil {
			return l, err
		}
		return after.AnnounceKill(time.Now(), killAt, after.Reason)
	})
	p.must(t, planner.Plan{Evictions: []planner.Eviction{{Pod: ref, Loan: l.ID}}})
	until(t, "the pod to be ending", func() bool { x := find(p.snapshot(t), ref.ID); return x != nil && x.Deleting })
	kill := planner.Plan{Kills: []planner.Kill{{Pod: ref, Loan: l.ID}}}
	if r := p.apply(t, kill); time.Now().Before(killAt) && r.Count(loop.Stale) != 1 {
		t.Fatalf("killed before its time: %+v", r.Results)
	}
	until(t, "the kill", func() bool { return p.apply(t, kill).Count(loop.Done) == 1 })
	until(t, "the kill to be seen", func() bool { x := find(p.snapshot(t), ref.ID); return x != nil && x.Killed })
	if r := p.apply(t, kill); r.Count(loop.Stale) != 1 {
		t.Fatalf("killed twice: %+v", r.Results)
	}
	if r := p.apply(t, planner.Plan{Marks: []planner.Mark{{Node: m.Name, ID: m.ID, Want: fleet.NodeMarks{HolderTaint: true, KeepNode: true, Fence: fleet.FenceExecute}}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("cut off before the loan said so: %+v", r.Results)
	}
	time.Sleep(time.Until(noticed.Deadline)) // the fence ends whatever is there, so it waits for the announced deadline
	p.step(t, planner.MoveFence, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Fence(time.Now(), reason.Said("not clean"))
	})
	fenced := tainted
	fenced.Fence = fleet.FenceExecute
	p.marks(t, m, fenced)
	p.step(t, planner.MoveWriteOff, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.WriteOff(time.Now(), reason.Said("not clean"))
	})
	if r := p.apply(t, planner.Plan{Marks: []planner.Mark{{Node: m.Name, ID: m.ID, Want: tainted}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("the fence goes though the parcel is written off: %+v", r.Results)
	}
	if _, err := p.core.CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to be gone", func() bool { return find(p.snapshot(t), ref.ID) == nil })
	p.reportClean(t, m.Name, noticed.Epoch)
	p.step(t, planner.MoveReturn, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Return(time.Now(), e) })
	p.history(t, string(l.ID), "Emptying", "Lent", "Noticed", "Draining", "Fenced", "WrittenOff", "Returned")
}

// TestPlaneBorrow leads a machine of an offline pool to online and back.
func TestPlaneBorrow(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := rand.String(5)
	m := p.machineOf(t, id, "batch")
	pod := p.offlinePod(t, id, m.Name)
	ref := planner.PodRef{Name: fleet.Name{Namespace: "default", Name: pod.Name}, ID: fleet.UID(pod.UID)}
	l := p.begin(t, fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: m.ID, NodeName: m.Name, Kind: fleet.KindNode, Cells: []int{0}, Capacity: m.Allocatable,
		From: fleet.PoolID("batch-" + id), To: fleet.PoolID("web-" + id)}.Invite(time.Now(), time.Now().Add(time.Minute), time.Now().Add(time.Hour), reason.Said("flood")),
		fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true})
	if l.Deadline.IsZero() || l.Due.IsZero() {
		t.Fatalf("the notice is not in the loan: %+v", l)
	}
	evict := planner.Plan{Evictions: []planner.Eviction{{Pod: ref, Loan: l.ID}}}
	if r := p.apply(t, evict); r.Count(loop.Stale) != 1 {
		t.Fatalf("evicted before the deadline: %+v", r.Results)
	}
	p.must(t, planner.Plan{Notices: []planner.Notice{{Pod: ref, Loan: l.ID, Epoch: l.Epoch, Deadline: l.Deadline}}})
	p.ack(t, pod.Name, l.Epoch)
	until(t, "the acknowledgement", func() bool { x := find(p.snapshot(t), ref.ID); return x != nil && x.AckEpoch == l.Epoch })
	p.must(t, evict)
	p.gone(t, pod.Name, ref.ID)
	p.reportClean(t, m.Name, 1)
	p.step(t, planner.MoveLend, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) })
	p.marks(t, m, fleet.NodeMarks{HomeLabel: true, KeepNode: true})
	p.step(t, planner.MoveRecall, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Recall(time.Now(), time.Now().Add(reclaim.EmergencyNotice), l.Due, reason.Said("ebb"))
	})
	p.marks(t, m, fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true})
	p.step(t, planner.MoveDrain, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) { return l.Drain(time.Now(), true) })
	if r := p.apply(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveFence, Before: *p.snapshot(t).Loan(l.ID), After: *p.snapshot(t).Loan(l.ID)}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("fenced for a return to offline: %+v", r.Results)
	}
	p.reportClean(t, m.Name, 2)
	p.step(t, planner.MoveReturn, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Return(time.Now(), e) })
	p.history(t, string(l.ID), "Emptying", "Lent", "Noticed", "Draining", "Returned")
}
