// Command scheduling measures pods bound a second on the lab's control plane: by the bundled scheduler, by kube-scheduler of the same version in the same
// run, and by bare bindings, which are the ceiling. The workloads are those of upstream's scheduler_perf, with counts scaled to one machine.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeConfig is kube-scheduler as it comes, without its client's limits.
const kubeConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: pki/admin.kubeconfig, qps: 5000, burst: 10000}
leaderElection: {leaderElect: false}
`

type options struct {
	lab, kwok            string
	nodes, pods          int
	rounds, creators     int
	workloads, schedules string
}

func main() {
	var o options
	flag.StringVar(&o.lab, "lab", "bin/springtide-lab", "the lab's binary")
	flag.StringVar(&o.kwok, "kwok", "bin/kwok", "the kwok binary")
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes")
	flag.IntVar(&o.pods, "pods", 2000, "pods that are measured")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median counts")
	flag.IntVar(&o.creators, "creators", 16, "creations under way at once: above what any scheduler binds")
	flag.StringVar(&o.workloads, "workloads", "SchedulingBasic", "workloads, by comma: "+strings.Join(names(), ", "))
	flag.StringVar(&o.schedules, "schedulers", "springtide,kube,bare", "who binds, by comma")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scheduling:", err)
		os.Exit(1)
	}
}

// result is one measurement.
type result struct {
	rate     float64
	p50, p99 time.Duration
}

func run(ctx context.Context, o options) error {
	all := map[string][]result{}
	for round := range o.rounds {
		for _, who := range strings.Split(o.schedules, ",") { // alternating, so that a busy minute hits all alike
			if err := measure(ctx, o, who, all); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, who, err)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d nodes, median of %d\t\tpods/s\tp50\tp99\t\n", o.nodes, o.rounds)
	for _, name := range strings.Split(o.workloads, ",") {
		for _, who := range strings.Split(o.schedules, ",") {
			rs := all[name+" "+who]
			if len(rs) == 0 {
				continue
			}
			slices.SortFunc(rs, func(a, b result) int { return int(a.rate*1000) - int(b.rate*1000) })
			m := rs[len(rs)/2]
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%s\t%s\t\n", name, who, m.rate, m.p50.Round(time.Millisecond), m.p99.Round(time.Millisecond))
		}
	}
	return w.Flush()
}

// measure plays the workloads on one plane of its own.
func measure(ctx context.Context, o options, who string, all map[string][]result) error {
	dir, err := os.MkdirTemp("", "scheduling-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{"up", "--dir", dir, "--kwok", o.kwok, "--scheduler", "springtide"}
	if who == "kube" {
		file := filepath.Join(dir, "kube-scheduler.yaml")
		if err := os.WriteFile(file, []byte(kubeConfig), 0o600); err != nil {
			return err
		}
		args = append(args, "--scheduler", "kube", "--kube-scheduler-config", file)
	}
	kubeconfig, stop, err := up(ctx, o.lab, args)
	if err != nil {
		return err
	}
	defer stop()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	b := &bench{o: o, who: who}
	if b.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if err := b.makeNodes(ctx); err != nil {
		return err
	}
	for _, name := range strings.Split(o.workloads, ",") {
		make, ok := workloads[name]
		if !ok {
			return fmt.Errorf("there is no workload %q: %s", name, strings.Join(names(), ", "))
		}
		r, err := b.play(ctx, name, make)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(os.Stderr, "%-26s %-10s %5.0f pods/s, p50 %v, p99 %v\n", name, who, r.rate, r.p50.Round(time.Millisecond), r.p99.Round(time.Millisecond))
		all[name+" "+who] = append(all[name+" "+who], r)
	}
	return nil
}

// up starts a control plane of its own and returns its kubeconfig once it is ready.
func up(ctx context.Context, lab string, args []string) (kubeconfig string, stop func(), err error) {
	cmd := exec.Command(lab, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if k, ok := strings.CutPrefix(lines.Text(), "export KUBECONFIG="); ok {
				said <- k
			}
		}
		close(said)
	}()
	select {
	case k, ok := <-said:
		if ok {
			return k, stop, nil
		}
		err = errors.New("the control plane ended at once")
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop()
	return "", nil, err
}

// Nodes with this annotation are kept ready by kwok.
const nodeAnnotation, nodeAnnotationValue = "kwok.x-k8s.io/node", "fake"

// workloads make the pods that are measured.
var workloads = map[string]func(i int, p *corev1.Pod){
	"SchedulingBasic": func(int, *corev1.Pod) {},
	"SchedulingNodeAffinity": func(_ int, p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-0", "zone-1"}}}}}}}}
	},
	"SchedulingPodAntiAffinity": func(i int, p *corev1.Pod) {
		p.Labels = map[string]string{"group": fmt.Sprint("g", i%4)}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelHostname}}}}
	},
	"TopologySpreading": func(_ int, p *corev1.Pod) {
		p.Labels = map[string]string{"color": "blue"}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	},
}

func names() []string {
	var out []string
	for name := range workloads {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

type bench struct {
	o      options
	who    string
	client kubernetes.Interface
}

const zones = 3

func (b *bench) makeNodes(ctx context.Context) error {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	err := b.each(ctx, b.o.nodes, func(ctx context.Context, i int) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
			Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%05d", i), corev1.LabelTopologyZone: fmt.Sprint("zone-", i%zones)}},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
		_, err := b.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // until kwok has found all of them ready, and caches have read that
	return nil
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

// play creates the pods of a workload and waits until all are bound. The rate counts from the first creation to the last binding.
func (b *bench) play(ctx context.Context, name string, change func(int, *corev1.Pod)) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	namespace := strings.ToLower(name)
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return result{}, err
	}
	for ctx.Err() == nil { // pods need the account of their namespace
		if _, err := b.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	created, bound := make([]time.Time, b.o.pods), make([]time.Time, b.o.pods)
	done, err := b.follow(ctx, namespace, bound)
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	err = b.each(ctx, b.o.pods, func(ctx context.Context, i int) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i), Namespace: namespace}, Spec: corev1.PodSpec{
			SchedulerName: map[string]string{"springtide": "springtide", "bare": "none"}[b.who],
			Containers: []corev1.Container{{Name: "pause", Image: "registry.example/pause:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi")}}}}}}
		change(i, p)
		created[i] = time.Now()
		got, err := b.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil || b.who != "bare" {
			return err
		}
		return b.client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: got.Name, Namespace: namespace, UID: got.UID},
			Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%05d", i%b.o.nodes)}}, metav1.CreateOptions{})
	})
	if err != nil {
		return result{}, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return result{}, fmt.Errorf("not all pods are bound: %w", ctx.Err())
	}
	var waits []time.Duration
	last := begin
	for i := range bound {
		waits = append(waits, bound[i].Sub(created[i]))
		if bound[i].After(last) {
			last = bound[i]
		}
	}
	slices.Sort(waits)
	return result{rate: float64(len(bound)) / last.Sub(begin).Seconds(), p50: waits[len(waits)/2], p99: waits[len(waits)*99/100]}, nil
}

// follow notes when each pod was seen bound, and closes the channel when all were.
func (b *bench) follow(ctx context.Context, namespace string, bound []time.Time) (<-chan struct{}, error) {
	done := make(chan struct{})
	left := len(bound)
	see := func(o any) {
		p, ok := o.(*corev1.Pod)
		var i int
		if !ok || p.Spec.NodeName == "" {
			return
		}
		if _, err := fmt.Sscanf(p.Name, "pod-%d", &i); err != nil || !bound[i].IsZero() {
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
