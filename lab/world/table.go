package world

import (
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/process"
)

// podKind says what a pod is in the world's play.
type podKind int

const (
	stranger podKind = iota // no pod that the world plays
	online                  // of a service's Deployment
	offline                 // of a Job
	filler                  // the controller's own: holds room
)

// pod is one pod, and where the world stands with it. All times are virtual. Its object is replaced at every event, under the table's
// lock; the other fields are the world's own goroutine's but where they say otherwise.
type pod struct {
	object *corev1.Pod // as last seen
	kind   podKind
	owner  fleet.Name // the Deployment or Job
	// requests are what the scheduler counts.
	requests fleet.Resources
	// boundAt is when it was first seen bound, readyAt when its start-up ends; zero while unbound. goneAt is when its
	// grace ends; zero while it is not deleted. Events set them, under the lock.
	boundAt, readyAt, goneAt time.Time
	// ready, gone and acked say that the world wrote so; writers set them, under the lock.
	ready, gone, acked bool

	// real pods are run, not played: all that a kubelet would write of them is the runner's to write. The real
	// machine's are kubelet's.
	real, kubelet bool
	// waitedSince is since when (by the wall) the clock waits for the kubelet to start or end it; zero while it does not.
	waitedSince time.Time
	// roomSince is when (by the wall) room was first seen for it while it waits for room.
	roomSince time.Time
	// begun and ended say that the job model knows. noticed is the epoch of the notice that is being followed, ackAt
	// when it is answered.
	begun, ended bool
	noticed      int64
	ackAt        time.Time
	// exported is the pod in the exporters, exportedReady what they say of it.
	exported      model.PodRef
	exports       bool
	exportedReady bool
	// restarted is how often its containers started again, exportedRestarts what the exporters say.
	restarted, exportedRestarts int32
	// waits is since when an online pod waits for room; events set it, under the lock.
	waits roomWait
}

// serves reports whether the pod takes requests.
func (p *pod) serves() bool { return p.ready && p.goneAt.IsZero() && !p.finished() }

// occupies reports whether the pod takes room on its node.
func (p *pod) occupies() bool { return p.object.Spec.NodeName != "" && !p.gone && !p.finished() }

// finished reports whether the pod has ended by itself or was ended.
func (p *pod) finished() bool {
	return p.object.Status.Phase == corev1.PodSucceeded || p.object.Status.Phase == corev1.PodFailed
}

// runner receives the pods that are run, not played.
type runner interface {
	Seen(*corev1.Pod)
	Lost(types.UID)
}

// table is what the world's watches have seen.
type table struct {
	now     func() time.Time
	startUp func(*pod) time.Duration
	// runner runs the pods of the machines in runs; nil when there are none.
	runner runner
	runs   map[string]bool
	// realMachine is the one with a kubelet; empty when there is none.
	realMachine string
	// homes is the pool of each machine. followsShares says that the scheduler places pods by NodeShares, before the nodes bear the marks.
	homes         map[string]string
	followsShares bool
	// agentWaitedFor is the generation of its share for which the clock waits, since agentWaitedSince (by the wall).
	agentWaitedFor   int64
	agentWaitedSince time.Time

	mu          sync.Mutex
	pods        map[types.UID]*pod
	nodes       map[string]*corev1.Node
	deployments map[fleet.Name]*appsv1.Deployment
	jobs        map[fleet.Name]*batchv1.Job
	loans       map[types.UID]*v1alpha1.Loan
	shares      map[string]*v1alpha1.NodeShare
	pools       map[string]*v1alpha1.CapacityPool
	// left are pods, and ended loans, that went since they were last asked for.
	left    []*pod
	ended   []*v1alpha1.Loan
	demands []model.DemandFacts
	// returns are parcels that came home and are not taken yet, taken those that were since they were last asked for.
	returns []*returned
	taken   []model.ReturnFacts
	// fresh are the objects that were seen since the watches began again; nil while they go on.
	fresh map[types.UID]bool
	// changed holds a token after every event, for those who wait for one.
	changed chan struct{}
}

func newTable(now func() time.Time, startUp func(*pod) time.Duration) *table {
	return &table{
		now: now, startUp: startUp,
		pods:        map[types.UID]*pod{},
		nodes:       map[string]*corev1.Node{},
		deployments: map[fleet.Name]*appsv1.Deployment{},
		jobs:        map[fleet.Name]*batchv1.Job{},
		loans:       map[types.UID]*v1alpha1.Loan{},
		shares:      map[string]*v1alpha1.NodeShare{},
		pools:       map[string]*v1alpha1.CapacityPool{},
		changed:     make(chan struct{}, 1),
	}
}

// seen takes one event of a watch over.
func (t *table) seen(object any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := object.(metav1.Object); ok && t.fresh != nil {
		t.fresh[o.GetUID()] = true
	}
	switch o := object.(type) {
	case *corev1.Pod:
		t.seenPod(o)
	case *corev1.Node:
		t.nodes[o.Name] = o
	case *appsv1.Deployment:
		t.deployments[fleet.Name{Namespace: o.Namespace, Name: o.Name}] = o
	case *batchv1.Job:
		t.jobs[fleet.Name{Namespace: o.Namespace, Name: o.Name}] = o
	case *v1alpha1.Loan:
		t.seenNotice(t.loans[o.UID], o)
		t.seenReturned(t.loans[o.UID], o)
		t.loans[o.UID] = o
	case *v1alpha1.NodeShare:
		t.shares[o.Name] = o
	case *v1alpha1.CapacityPool:
		t.pools[o.Name] = o
	}
	t.poke()
}

// lost takes the end of an object over.
func (t *table) lost(object any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		if p := t.pods[o.UID]; p != nil {
			t.leave(o.UID, p)
		}
	case *corev1.Node:
		delete(t.nodes, o.Name)
	case *appsv1.Deployment:
		delete(t.deployments, fleet.Name{Namespace: o.Namespace, Name: o.Name})
	case *batchv1.Job:
		delete(t.jobs, fleet.Name{Namespace: o.Namespace, Name: o.Name})
	case *v1alpha1.Loan:
		delete(t.loans, o.UID)
		t.ended = append(t.ended, o)
	case *v1alpha1.NodeShare:
		delete(t.shares, o.Name)
	case *v1alpha1.CapacityPool:
		delete(t.pools, o.Name)
	}
	t.poke()
}

// leave drops a pod; the caller holds the lock.
func (t *table) leave(uid types.UID, p *pod) {
	delete(t.pods, uid)
	t.seenServed(uid, "")
	t.left = append(t.left, p)
	if p.real {
		t.runner.Lost(uid)
	}
}

// sweep drops the pods and loans that the new watches did not find; of other kinds nothing is deleted while the world stands.
func (t *table) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, p := range t.pods {
		if !t.fresh[uid] {
			t.leave(uid, p)
		}
	}
	for uid, l := range t.loans {
		if !t.fresh[uid] {
			delete(t.loans, uid)
			t.ended = append(t.ended, l)
		}
	}
	t.fresh = nil
}

func (t *table) poke() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// mark changes the table under its lock.
func (t *table) mark(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// seenPod starts the virtual timers of a pod as it is bound and deleted. The clock stands still until the control plane is quiet, so the
// time at which the watch tells is the time at which it happened.
func (t *table) seenPod(o *corev1.Pod) {
	p := t.pods[o.UID]
	if p == nil {
		p = &pod{requests: requestsOf(o)}
		p.kind, p.owner = classify(o)
		t.pods[o.UID] = p
	}
	p.object = o
	if p.boundAt.IsZero() && o.Spec.NodeName != "" {
		p.boundAt = t.now()
		p.kubelet = o.Spec.NodeName == t.realMachine
		p.real = !p.kubelet && t.runs[o.Spec.NodeName] && process.Runs(&o.Spec)
		p.readyAt = p.boundAt.Add(t.startUp(p))
		if p.kind == online {
			t.seenServed(o.UID, o.Spec.NodeName)
		}
	}
	if p.goneAt.IsZero() && o.DeletionTimestamp != nil {
		p.goneAt = t.now()
		// A pod that has saved its work and waits to go needs no grace.
		if s := o.DeletionGracePeriodSeconds; s != nil && !p.acked {
			p.goneAt = p.goneAt.Add(time.Duration(*s) * time.Second)
		}
	}
	t.seenWaiting(p)
	if p.real {
		p.ready = o.Status.Phase == corev1.PodRunning
		t.runner.Seen(o)
	}
	if p.kubelet {
		if now := podReady(o); now != p.ready {
			p.ready, p.readyAt = now, t.now()
		}
	}
}

func podReady(o *corev1.Pod) bool {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// classify finds what a pod is by its owner. A Deployment's pods belong to a ReplicaSet named after it and a hash.
func classify(o *corev1.Pod) (podKind, fleet.Name) {
	if o.Labels[v1alpha1.LabelComponent] == v1alpha1.ComponentFiller {
		return filler, fleet.Name{}
	}
	for i := range o.OwnerReferences {
		owner := &o.OwnerReferences[i]
		name := fleet.Name{Namespace: o.Namespace, Name: owner.Name}
		switch owner.Kind {
		case "ReplicaSet":
			if i := strings.LastIndexByte(owner.Name, '-'); i > 0 {
				name.Name = owner.Name[:i]
			}
			return online, name
		case "Job":
			return offline, name
		}
	}
	return stranger, fleet.Name{}
}
