package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// bench plays workloads on one plane.
type bench struct {
	*plane
	o   options
	who string
}

// start starts a plane for each scheduler, with all nodes. Bare bindings are played on the first plane.
func start(ctx context.Context, o options, schedules []string) (map[string]*bench, func(), error) {
	benches := map[string]*bench{}
	var stops []func()
	stop := func() {
		for _, f := range stops {
			f()
		}
	}
	var one *plane
	for _, who := range schedules {
		if who == "bare" {
			continue
		}
		dir, err := os.MkdirTemp("", "scheduling-")
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, func() { _ = os.RemoveAll(dir) })
		p, err := startPlane(ctx, o, who, dir)
		if err != nil {
			return nil, stop, err
		}
		stops = slices.Insert(stops, 0, p.stop)
		if one == nil {
			one = p
		}
		b := &bench{plane: p, o: o, who: who}
		benches[who] = b
		if err := b.furnish(ctx); err != nil {
			return nil, stop, err
		}
	}
	if one == nil {
		return nil, stop, errors.New("bare bindings are played next to a scheduler: name one")
	}
	benches["bare"] = &bench{plane: one, o: o, who: "bare"}
	return benches, stop, nil
}

// furnish makes the nodes of a plane and what all workloads need.
func (b *bench) furnish(ctx context.Context) error {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: highPriority}, Value: 10}
	if _, err := b.client.SchedulingV1().PriorityClasses().Create(ctx, high, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := b.each(ctx, b.o.nodes, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Nodes().Create(ctx, newNode(fmt.Sprintf("node-%05d", i), i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return b.nodesReady(ctx)
}

// nodesReady waits until kwok has found all nodes ready, so that its writes are over.
func (b *bench) nodesReady(ctx context.Context) error {
	for {
		list, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready >= b.o.nodes {
			return nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// each does something n times, some at once.
func (b *bench) each(ctx context.Context, n int, do func(context.Context, int) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, b.o.creators)
	for w := range b.o.creators {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = do(ctx, i)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// mostTime bounds one workload: 20,000 pods are bound before a preemption on 5,000 nodes is measured.
const mostTime = 10 * time.Minute

// play plays a workload, measures its pods, and takes everything away again. The rate counts from the first creation to the last binding; of a backlog, from
// the moment at which the scheduler may go on.
func (b *bench) play(ctx context.Context, w workload) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	if err := b.prepare(ctx, w); err != nil {
		return result{}, err
	}
	for k := range w.first {
		if _, _, err := b.bound(ctx, fmt.Sprint("first-", k), first, &w.first[k], b.who, nil); err != nil {
			return result{}, fmt.Errorf("before the measurement: %w", err)
		}
	}
	m := measurement{bench: b, w: w}
	defer m.end()
	created, bound, err := b.bound(ctx, "pod", measured, &w.pods, b.who, &m)
	if err != nil {
		return result{}, err
	}
	after, err := b.read(ctx)
	if err != nil {
		return result{}, err
	}
	m.end()
	r := summary(created, bound)
	r.Cost = after.since(m.before, len(bound))
	return r, b.clean(ctx)
}

// measurement is what goes on while the pods of a workload are measured.
type measurement struct {
	*bench
	w      workload
	before cost
	stop   context.CancelFunc
	side   sync.WaitGroup
}

// begin reads what was spent before, and starts what goes on next to the pods.
func (m *measurement) begin(ctx context.Context) error {
	var err error
	if m.before, err = m.read(ctx); err != nil {
		return err
	}
	ctx, m.stop = context.WithCancel(ctx)
	if m.w.churn > 0 {
		m.side.Go(func() { m.churn(ctx, m.w) })
	}
	if m.o.profile != "" && m.who == "springtide" {
		m.side.Go(func() {
			if err := m.plane.profile(ctx, filepath.Join(m.o.profile, m.w.name+".pprof"), 3*time.Second); err != nil {
				fmt.Fprintln(os.Stderr, "scheduling: read a profile:", err)
			}
		})
	}
	return nil
}

// end stops what goes on; again, it does nothing.
func (m *measurement) end() {
	if m.stop != nil {
		m.stop()
	}
	m.side.Wait()
}

func summary(created, bound []time.Time) result {
	begin, last := slices.MinFunc(created, time.Time.Compare), slices.MaxFunc(bound, time.Time.Compare)
	waits := make([]time.Duration, len(bound))
	for i := range bound {
		waits[i] = bound[i].Sub(created[i])
	}
	slices.Sort(waits)
	return result{Rate: float64(len(bound)) / last.Sub(begin).Seconds(), P50: waits[len(waits)/2], P99: waits[len(waits)*99/100]}
}

// prepare makes the namespaces and the workload's own node.
func (b *bench) prepare(ctx context.Context, w workload) error {
	for _, n := range []string{first, measured} {
		_, err := b.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		for { // pods need the account of their namespace
			if _, err := b.client.CoreV1().ServiceAccounts(n).Get(ctx, "default", metav1.GetOptions{}); err == nil {
				break
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	if w.node == nil {
		return nil
	}
	_, err := b.client.CoreV1().Nodes().Create(ctx, w.node(), metav1.CreateOptions{})
	return err
}

// clean deletes what a workload made, and waits until it is gone.
func (b *bench) clean(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for _, n := range []string{first, measured} {
		groups := b.client.SchedulingV1beta1().PodGroups(n)
		if err := groups.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return err
		}
		for {
			// The server gives a call a minute, which is too short for 20,000 pods: it answers so, or breaks the stream. The next call goes on.
			unfinished := b.client.CoreV1().Pods(n).DeleteCollection(ctx, now, metav1.ListOptions{})
			list, err := b.client.CoreV1().Pods(n).List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return err
			}
			left, err := groups.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return err
			}
			if len(list.Items) == 0 && len(left.Items) == 0 {
				break
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil { // the controller of PodGroups lets one go after its pods
				return errors.Join(err, unfinished)
			}
		}
	}
	if err := b.client.CoreV1().Nodes().Delete(ctx, daemonNode, now); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return sleep(ctx, time.Second) // until the schedulers have seen it
}

// tidy is clean after a workload that failed.
func (b *bench) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	return b.clean(ctx)
}

// churn makes what the workload makes, and takes away what it made the time before.
func (b *bench) churn(ctx context.Context, w workload) {
	recreates := w.churn >= time.Second
	var before []any
	for i := 0; ; i++ {
		now := w.make(i)
		for _, o := range now {
			b.put(ctx, o)
		}
		if sleep(ctx, w.churn) != nil {
			b.take(context.WithoutCancel(ctx), slices.Concat(before, now))
			return
		}
		if recreates {
			b.take(ctx, before)
			before = now
		}
	}
}

// put makes an object. A failure is left out: churn is noise, and the pods are what is measured.
func (b *bench) put(ctx context.Context, o any) {
	var err error
	switch o := o.(type) {
	case *corev1.Node:
		_, err = b.client.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Pod:
		o.Spec.SchedulerName = schedulerName[b.who]
		_, err = b.client.CoreV1().Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Service:
		_, err = b.client.CoreV1().Services(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "scheduling: churn:", err)
	}
}

func (b *bench) take(ctx context.Context, all []any) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for _, o := range all {
		var err error
		switch o := o.(type) {
		case *corev1.Node:
			err = b.client.CoreV1().Nodes().Delete(ctx, o.Name, now)
		case *corev1.Pod:
			err = b.client.CoreV1().Pods(o.Namespace).Delete(ctx, o.Name, now)
		case *corev1.Service:
			err = b.client.CoreV1().Services(o.Namespace).Delete(ctx, o.Name, now)
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			fmt.Fprintln(os.Stderr, "scheduling: churn:", err)
		}
	}
}

// schedulers are the processes of those that bind.
var schedulers = map[string]string{"springtide": "springtide-scheduler", "kube": "kube-scheduler"}

// schedulerName is the name that pods ask for; kube-scheduler serves those that name none.
var schedulerName = map[string]string{"springtide": "springtide", "bare": "none"}

// bound creates the pods of a group and waits until all are bound, and when each was. The pods of a measurement may be
// a backlog: the scheduler pauses until all are there, and each counts as created when it goes on.
func (b *bench) bound(ctx context.Context, prefix, namespace string, g *group, who string, m *measurement) (created, bound []time.Time, err error) {
	n := g.count(b.o.nodes, b.o.pods)
	created, bound = make([]time.Time, n), make([]time.Time, n)
	following, stop := context.WithCancel(ctx)
	defer stop()
	done, err := b.follow(following, prefix, namespace, bound)
	if err != nil {
		return nil, nil, err
	}
	backlog := m != nil && b.o.backlog
	if backlog && who != "bare" {
		if err := b.signal(schedulers[who], syscall.SIGSTOP); err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, b.signal(schedulers[who], syscall.SIGCONT)) }()
	}
	if m != nil && !backlog {
		if err := m.begin(ctx); err != nil {
			return nil, nil, err
		}
	}
	if g.gang > 0 {
		err := b.each(ctx, n/g.gang, func(ctx context.Context, i int) error {
			_, err := b.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, podGroup(fmt.Sprint(prefix, "-", i), namespace, g.gang), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	uids := make([]types.UID, n)
	bind := func(ctx context.Context, i int) error {
		return b.client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: podName(prefix, i), Namespace: namespace, UID: uids[i]},
			Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%05d", i%b.o.nodes)}}, metav1.CreateOptions{})
	}
	err = b.each(ctx, n, func(ctx context.Context, i int) error {
		p := newPod(podName(prefix, i), namespace)
		if g.pod != nil {
			g.pod(i, p)
		}
		if g.gang > 0 {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(fmt.Sprint(prefix, "-", i/g.gang))}
		}
		p.Spec.SchedulerName = schedulerName[who]
		created[i] = time.Now()
		got, err := b.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		uids[i] = got.UID
		if who != "bare" || backlog {
			return nil
		}
		return bind(ctx, i)
	})
	if err != nil {
		return nil, nil, err
	}
	if backlog {
		if err := m.begin(ctx); err != nil {
			return nil, nil, err
		}
		now := time.Now()
		for i := range created {
			created[i] = now
		}
		if who == "bare" {
			err = b.each(ctx, n, bind)
		} else {
			err = b.signal(schedulers[who], syscall.SIGCONT)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if g.waits {
		return created, bound, sleep(ctx, 2*time.Second)
	}
	select {
	case <-done:
		return created, bound, nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("not all pods are bound: %w", ctx.Err())
	}
}

func podName(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// follow notes when each pod of a group was seen bound, and closes the channel when all were.
func (b *bench) follow(ctx context.Context, prefix, namespace string, bound []time.Time) (<-chan struct{}, error) {
	done := make(chan struct{})
	left := len(bound)
	see := func(o any) {
		p, ok := o.(*corev1.Pod)
		var i int
		if !ok || p.Spec.NodeName == "" {
			return
		}
		if _, err := fmt.Sscanf(strings.TrimPrefix(p.Name, prefix), "-%d", &i); err != nil || !strings.HasPrefix(p.Name, prefix) || !bound[i].IsZero() {
			return
		}
		bound[i] = time.Now()
		if left--; left == 0 {
			close(done)
		}
	}
	informer := coreinformers.NewPodInformer(b.client, namespace, 0, nil)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return done, nil
}
