package world

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

var noon = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

// newTestTable is a table whose clock stands at *now and whose pods take a minute to start.
func newTestTable(now *time.Time) *table {
	return newTable(func() time.Time { return *now }, func(*pod) time.Duration { return time.Minute })
}

// podOption changes a pod that a test makes.
type podOption func(*corev1.Pod)

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func inPhase(phase corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func deleted(grace int64) podOption {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(noon)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
}

func withoutRoom() podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}
	}
}

func tracked() podOption {
	return func(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} }
}

// testPod is a pending pod of one core and one GiB that belongs to the ReplicaSet or Job of the given name in namespace shop.
func testPod(name, ownerKind, owner string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container(fleet.Resources{CPU: 1000, Memory: fleet.GiB})}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: owner}}
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func testDeployment(name string, replicas int32, generation, observed int64) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: generation},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: observed},
	}
}

func testJob(name string, parallelism int32, change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: batchv1.JobSpec{Parallelism: &parallelism}}
	if change != nil {
		change(j)
	}
	return j
}

func testNode(name string, taints ...corev1.Taint) *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{Allocatable: room},
	}
}

func TestPending(t *testing.T) {
	completions, yes := int32(5), true
	holder := corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name string
		seen []any
		want string // part of the reason; quiet when empty
	}{
		{"an empty cluster", nil, ""},
		{"a deployment whose spec was not observed", []any{testDeployment("web", 0, 2, 1)}, "generation 2 not observed"},
		{"a deployment without its pods", []any{testDeployment("web", 1, 1, 1)}, "0 pods where 1 are wanted"},
		{"a pod that the scheduler has not judged", []any{testDeployment("web", 1, 1, 1), testPod("a", "ReplicaSet", "web-5f")}, "pod shop/a: the scheduler has not judged it"},
		{"a bound pod", []any{testDeployment("web", 1, 1, 1), testPod("a", "ReplicaSet", "web-5f", on("n"))}, ""},
		{"a pod without room", []any{testDeployment("web", 1, 1, 1), testPod("a", "ReplicaSet", "web-5f", withoutRoom())}, ""},
		{"a pod without room, and a machine with some",
			[]any{testDeployment("web", 1, 1, 1), testNode("n"), testPod("a", "ReplicaSet", "web-5f", withoutRoom())}, "there is room for it now"},
		{"a pod without room, and a machine that is lent",
			[]any{testDeployment("web", 1, 1, 1), testNode("n", holder), testPod("a", "ReplicaSet", "web-5f", withoutRoom())}, ""},
		{"a pod without room, and a machine that is full",
			[]any{testDeployment("web", 3, 1, 1), testNode("n"), testPod("a", "ReplicaSet", "web-5f", withoutRoom()),
				testPod("b", "ReplicaSet", "web-5f", on("n")), testPod("c", "ReplicaSet", "web-5f", on("n"))}, ""},
		{"one pod too many", []any{testDeployment("web", 0, 1, 1), testPod("a", "ReplicaSet", "web-5f", on("n"))}, "1 pods where 0 are wanted"},
		{"a pod that leaves", []any{testDeployment("web", 0, 1, 1), testPod("a", "ReplicaSet", "web-5f", on("n"), deleted(30))}, ""},
		{"a job without its pods", []any{testJob("train", 2, nil), testPod("a", "Job", "train", on("n"))}, "1 pods (0 leaving) where 2 are wanted"},
		{"a job whose pod is replaced only once it is gone", []any{testJob("train", 1, nil), testPod("a", "Job", "train", on("n"), deleted(30))}, ""},
		{"a job that wants no more completions than remain",
			[]any{testJob("train", 3, func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = &completions, 4 }), testPod("a", "Job", "train", on("n"))}, ""},
		{"a job with more pods than it wants", []any{testJob("train", 0, nil), testPod("a", "Job", "train", on("n"))}, "1 pods (0 leaving) where 0 are wanted"},
		{"a suspended job", []any{testJob("train", 3, func(j *batchv1.Job) { j.Spec.Suspend = &yes })}, ""},
		{"a job that is over", []any{testJob("train", 3, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		})}, ""},
		{"an ended pod that its job has not counted",
			[]any{testJob("train", 0, nil), testPod("a", "Job", "train", on("n"), inPhase(corev1.PodFailed), tracked())}, "1 ended pods not counted"},
		{"an ended pod that its job has counted", []any{testJob("train", 0, nil), testPod("a", "Job", "train", on("n"), inPhase(corev1.PodFailed))}, ""},
		{"a filler that waits for its room", []any{testPod("f", "", "", func(p *corev1.Pod) {
			p.Labels = map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentFiller}
		})}, "the scheduler has not judged it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := noon
			table := newTestTable(&now)
			for _, o := range c.seen {
				table.seen(o)
			}
			if got := table.pending(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("pending() = %q, want it to hold %q", got, c.want)
			}
		})
	}
}

// A pod for which there seems to be room, but which the scheduler does not place, is waited for a moment only.
func TestASecondLookIsEnough(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.seen(testNode("n"))
	table.seen(testPod("a", "ReplicaSet", "web-5f", withoutRoom()))
	if table.pending() == "" {
		t.Fatal("there is room: the scheduler must be waited for")
	}
	for _, p := range table.pods {
		p.roomSince = time.Now().Add(-secondLook)
	}
	if got := table.pending(); got != "" {
		t.Errorf("pending() = %q after the second look", got)
	}
}

// The patience with all pods runs at once: a world that waited for one after the other stood still for minutes of the wall.
func TestPodsAreWaitedForTogether(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.seen(testNode("n"))
	for _, name := range []string{"a", "b", "c"} {
		table.seen(testPod(name, "ReplicaSet", "web-5f", withoutRoom()))
	}
	if table.pending() == "" {
		t.Fatal("there is room: the scheduler must be waited for")
	}
	for name, p := range table.pods {
		if p.roomSince.IsZero() {
			t.Errorf("the wait for %s has not begun", name)
		}
	}
}

// The bundled scheduler lets no pod of the home land on a machine whose loan is under way, and no borrower's before it is lent. The node has no mark then.
func TestAShareClosesItsMachine(t *testing.T) {
	parcel := func(holder, next string) []v1alpha1.ShareParcel {
		return []v1alpha1.ShareParcel{{Cells: []int32{0}, Holder: holder, Next: next}}
	}
	for _, c := range []struct {
		what                   string
		parcels                []v1alpha1.ShareParcel
		marksOnly              bool
		forOnline, forBorrower bool // the scheduler is waited for
	}{
		{what: "at home", forOnline: true},
		{what: "leaves", parcels: parcel(onlinePool, offlinePool)},
		{what: "lent", parcels: parcel(offlinePool, ""), forBorrower: true},
		{what: "comes home", parcels: parcel(offlinePool, onlinePool)},
		{what: "leaves, by kube-scheduler", parcels: parcel(onlinePool, offlinePool), marksOnly: true, forOnline: true, forBorrower: true},
	} {
		for owner, want := range map[string]bool{"ReplicaSet": c.forOnline, "Job": c.forBorrower} {
			now := noon
			table := newTestTable(&now)
			table.homes, table.followsShares = map[string]string{"n": onlinePool}, !c.marksOnly
			node := testNode("n")
			node.UID = "uid-n"
			node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") // one of them in each cell
			table.seen(node)
			table.seen(&v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1alpha1.NodeShareSpec{NodeUID: "uid-n", Parcels: c.parcels}})
			table.seen(testPod("a", owner, "web-5f", withoutRoom()))
			if got := table.pending(); (got != "") != want {
				t.Errorf("a machine that is %s, pod of a %s: pending() = %q, want a wait: %v", c.what, owner, got, want)
			}
		}
	}
}

// A borrower has the cells that are lent to it, however much of the machine is free: where they are full the scheduler has no room, and is not waited for.
func TestBorrowersHaveTheLentCells(t *testing.T) {
	for used, want := range map[string]bool{"": true, "Job": false, "ReplicaSet": true} {
		now := noon
		table := newTestTable(&now)
		table.homes, table.followsShares = map[string]string{"n": onlinePool}, true
		node := testNode("n")
		node.UID = "uid-n"
		node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("6")
		table.seen(node)
		table.seen(&v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1alpha1.NodeShareSpec{NodeUID: "uid-n", Parcels: []v1alpha1.ShareParcel{{Cells: []int32{0}, Holder: offlinePool}}}})
		if used != "" { // one of six cores, of which a quarter is lent
			table.seen(testPod("there", used, "other-5f", on("n")))
		}
		table.seen(testPod("waits", "Job", "web-5f", withoutRoom()))
		if got := table.pending(); (got != "") != want {
			t.Errorf("with a pod of a %q there: pending() = %q, want a wait: %v", used, got, want)
		}
	}
}

func TestTheTimersOfAPod(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.seen(testPod("a", "ReplicaSet", "web-5f"))
	p := table.pods["uid-a"]
	if p.kind != online || p.owner != (fleet.Name{Namespace: "shop", Name: "web"}) {
		t.Fatalf("the pod is taken for kind %v of %s", p.kind, p.owner)
	}
	if !p.boundAt.IsZero() {
		t.Fatal("a pod without a node has begun to start")
	}
	now = noon.Add(time.Minute)
	table.seen(testPod("a", "ReplicaSet", "web-5f", on("n")))
	now = noon.Add(2 * time.Minute)
	table.seen(testPod("a", "ReplicaSet", "web-5f", on("n"))) // noticed again
	if !p.boundAt.Equal(noon.Add(time.Minute)) || !p.readyAt.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("bound at %s and ready at %s, want 12:01 and 12:02", p.boundAt, p.readyAt)
	}
	table.seen(testPod("a", "ReplicaSet", "web-5f", on("n"), deleted(30)))
	if want := now.Add(30 * time.Second); !p.goneAt.Equal(want) {
		t.Errorf("gone at %s, want its grace from now: %s", p.goneAt, want)
	}
	table.lost(testPod("a", "ReplicaSet", "web-5f"))
	if len(table.pods) != 0 || len(table.left) != 1 {
		t.Errorf("%d pods in the table and %d that left, want 0 and 1", len(table.pods), len(table.left))
	}
}

// A pod that has acknowledged its notice has nothing left to do in its grace.
func TestAnAcknowledgedPodGoesAtOnce(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.seen(testPod("a", "Job", "train", on("n")))
	p := table.pods["uid-a"]
	p.acked = true
	table.seen(testPod("a", "Job", "train", on("n"), deleted(30)))
	if !p.goneAt.Equal(noon) {
		t.Errorf("gone at %s, want %s", p.goneAt, noon)
	}
}

// Objects that went while the API server was away leave the table when the watches begin again.
func TestSweep(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.seen(testPod("a", "", ""))
	table.seen(testPod("b", "", ""))
	table.fresh = map[types.UID]bool{}
	table.seen(testPod("b", "", ""))
	table.sweep()
	if len(table.pods) != 1 || table.pods["uid-b"] == nil {
		t.Errorf("the table holds %v, want b alone", table.pods)
	}
	if len(table.left) != 1 || table.left[0].object.Name != "a" {
		t.Errorf("left: %v, want a", table.left)
	}
}
