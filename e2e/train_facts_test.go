package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/train"
	"github.com/springtide/springtide/lab/world"
)

// trainingNamespace is that of both trainers' manifests.
const trainingNamespace = "training"

// prepare makes the lending plain: whole machines, one at a time, with a short notice, and no other job that grows into them.
func (p *training) prepare(s *watcher) {
	p.t.Helper()
	p.merge(s, "capacitypools", "online",
		`{"spec":{"lendableUnit":"Node","noticeSeconds":60,"minimumTermSeconds":600,"moves":{"atOnce":1,"perHour":1}}}`)
	for _, j := range list[v1alpha1.ElasticJob](s, "elasticjobs") {
		if err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticjobs")).Namespace(j.Namespace).
			Delete(context.Background(), j.Name, metav1.DeleteOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
	// Pods of theirs that wait would take what is lent. One played pod makes room for those that stay, too little for a worker.
	pods, err := s.core.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	runs := map[types.UID]int32{}
	for i := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && pods.Items[i].Spec.NodeName != "" {
			runs[owner.UID]++
		}
	}
	played, err := s.core.BatchV1().Jobs("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range played.Items {
		j := &played.Items[i]
		most := runs[j.UID]
		if j.Name == "transcode" {
			most--
		}
		patch := fmt.Appendf(nil, `{"spec":{"parallelism":%d}}`, min(*j.Spec.Parallelism, most))
		if _, err := s.core.BatchV1().Jobs(j.Namespace).Patch(context.Background(), j.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// begin makes the namespace and both jobs.
func (p *training) begin(w *world.World, s *watcher) {
	p.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: trainingNamespace}}
	if _, err := s.core.CoreV1().Namespaces().Create(context.Background(), ns, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	script, err := filepath.Abs("../lab/train/elastic.py")
	if err != nil {
		p.t.Fatal(err)
	}
	lab, _ := planetest.Binaries(p.t)
	vars := map[string]string{
		"LAB": lab, "SERVERS": port(p.t) + "," + port(p.t),
		"PYTHON": python, "ELASTIC": script, "RENDEZVOUS": port(p.t), "CHECKPOINTS": filepath.Join(w.Dir(), "checkpoints"),
	}
	for _, file := range []string{"jobs/ps.yaml", "jobs/torch.yaml"} {
		manifest, err := train.Jobs.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, text := range strings.Split(string(manifest), "\n---\n") {
			p.create(s, text, vars)
		}
	}
}

// create makes one object of a manifest; $(NAME) is the kubelet's to expand, ${NAME} ours.
func (p *training) create(s *watcher, text string, vars map[string]string) {
	p.t.Helper()
	for name, value := range vars {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		p.t.Fatal(err)
	}
	kind := u.GroupVersionKind()
	resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
	if _, err := s.dyn.Resource(resource).Namespace(u.GetNamespace()).Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		p.t.Fatalf("%s %s: %v", kind.Kind, u.GetName(), err)
	}
}

func (p *training) merge(s *watcher, resource, name, patch string) {
	p.t.Helper()
	_, err := s.dyn.Resource(ownKind(resource)).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *training) remove(s *watcher, resource, name string) {
	p.t.Helper()
	if err := s.dyn.Resource(ownKind(resource)).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func ownKind(resource string) schema.GroupVersionResource {
	return v1alpha1.GroupVersion.WithResource(resource)
}

// diary keeps the facts of each training pod in the order in which the API server sent them.
type diary struct {
	mu   sync.Mutex
	pods map[types.UID]*entry
	// turns counts recalls, shown is the turn that is looked at.
	turns, shown int
}

// entry is one pod.
type entry struct {
	name  string
	turn  int
	facts []string
}

// watchPods begins a diary.
func watchPods(t *testing.T, core kubernetes.Interface) *diary {
	t.Helper()
	d := &diary{pods: map[types.UID]*entry{}}
	factory := informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithNamespace(trainingNamespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { d.see(o.(*corev1.Pod), false) },
		UpdateFunc: func(_, o any) { d.see(o.(*corev1.Pod), false) },
		DeleteFunc: func(o any) {
			if p, ok := o.(*corev1.Pod); ok {
				d.see(p, true)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	factory.Start(done)
	t.Cleanup(func() { close(done); factory.Shutdown() })
	return d
}

// see notes what is new of a pod.
func (d *diary) see(p *corev1.Pod, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.pods[p.UID]
	if e == nil {
		e = &entry{name: p.Name, turn: d.turns}
		d.pods[p.UID] = e
	}
	notice, _, err := train.ParseNotice([]byte(p.Annotations[v1alpha1.AnnotationNotice]))
	for _, fact := range []struct {
		name string
		is   bool
	}{
		{"runs", p.Status.Phase == corev1.PodRunning},
		{"noticed", err == nil},
		{"acked", err == nil && p.Annotations[v1alpha1.AnnotationAck] == fmt.Sprint(notice.Epoch)},
		{"evicted", p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		})},
		{"gone", gone},
	} {
		if fact.is && !slices.Contains(e.facts, fact.name) {
			e.facts = append(e.facts, fact.name)
		}
	}
}

// turn begins the next turn, and looks at it.
func (d *diary) turn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turns++
	d.shown = d.turns
}

// show looks at a turn.
func (d *diary) show(turn int) { d.shown = turn }

func (d *diary) now() int { return d.shown }

// turnOf is the turn of a pod by its directory: name and the beginning of its UID; -1 for none.
func (d *diary) turnOf(directory string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid, e := range d.pods {
		if rest, ok := strings.CutPrefix(directory, e.name+"-"); ok && strings.HasPrefix(string(uid), rest) {
			return e.turn
		}
	}
	return -1
}

// of are the pods of a turn whose name has a part.
func (d *diary) of(turn int, part string) []entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []entry
	for _, e := range d.pods {
		if e.turn == turn && strings.Contains(e.name, part) {
			out = append(out, *e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out
}

// live counts the pods that are not gone and of which a fact is known; any will do when it is empty.
func (d *diary) live(part, fact string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, e := range d.pods {
		if strings.Contains(e.name, part) && !slices.Contains(e.facts, "gone") && (fact == "" || slices.Contains(e.facts, fact)) {
			n++
		}
	}
	return n
}

// linesOf reads one log.
func linesOf(t *testing.T, log string) []train.Line {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return train.ParseAll(string(data))
}

func first(lines []train.Line, event string) *train.Line {
	if i := slices.IndexFunc(lines, func(l train.Line) bool { return l.Event == event }); i >= 0 {
		return &lines[i]
	}
	return nil
}

func last(lines []train.Line, event string) *train.Line {
	for _, l := range slices.Backward(lines) {
		if l.Event == event {
			return &l
		}
	}
	return nil
}

// steps are the lines that report a step.
func steps(lines []train.Line) []train.Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l train.Line) bool { return l.Event != train.Step })
}

// few is over how many steps a loss is averaged: batches differ.
const few = 15

func mean(lines []train.Line) float64 {
	sum := 0.0
	for _, l := range lines {
		sum += l.Loss / float64(len(lines))
	}
	return sum
}

// goesOn wants a curve to fall on from where it stood. Begun again it would stand at its first losses.
func goesOn(t *testing.T, name string, before, after []train.Line) {
	t.Helper()
	if len(before) < 2*few || len(after) < 2*few {
		t.Errorf("%s: %d steps before and %d after are too few to judge", name, len(before), len(after))
		return
	}
	start, stop := mean(before[:few]), mean(before[len(before)-few:])
	resumed, end := mean(after[:few]), mean(after[len(after)-few:])
	if !(stop < 0.9*start && resumed < (start+stop)/2 && end < stop) {
		t.Errorf("%s: the loss went %.4f to %.4f before the recall and %.4f to %.4f after the return: want it to go on falling", name, start, stop, resumed, end)
	}
}

// curve is the loss at a few steps.
func curve(before, after []train.Line) string {
	var out []string
	for _, half := range [][]train.Line{before, after} {
		for i := range 5 {
			l := half[i*(len(half)-1)/4]
			out = append(out, fmt.Sprintf("%.3f@%d", l.Loss, l.Step))
		}
		out = append(out, "|")
	}
	return strings.Join(out[:len(out)-1], " ")
}
