package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// kubelets remembers which kubelets refused pods that were bound to their nodes. A kubelet knows what no object says, so the same decision would end the same
// way: for a while no pod that asks for the same goes there. The while grows with each further refusal, and the node comes last of equals until pods of the kind
// run there or the matter is forgotten.
type kubelets struct {
	refused map[refusedOn]*kubeletRefusal
	// ask finds out why a pod ended that never ran; report records a refusal on the node.
	ask    func(*corev1.Pod)
	report func(node *corev1.Node, o *corev1.Pod, text string)
}

// refusedOn is a node and what was refused there.
type refusedOn struct {
	node string
	asks asks
}

// asks is what a kubelet admits a pod by: equal for pods that it admits or refuses alike.
type asks struct {
	requests           fleet.Resources
	ephemeral          fleet.Bytes
	cells              place.CellPolicy
	exclusive, oneRoot bool
	more               string // further resources and host ports
}

type kubeletRefusal struct {
	reason string
	times  int
	until  time.Time
	// ended: the pods that wait were woken at the end of the penalty.
	ended bool
}

const (
	// firstPenalty is for how long a node takes no pod of a kind after its kubelet refused one; each further refusal doubles it, up to mostPenalty.
	firstPenalty, mostPenalty = 10 * time.Second, 5 * time.Minute
	// forgetRefusal is when a refusal is forgotten, after the end of its penalty.
	forgetRefusal = 10 * time.Minute
)

func newKubelets() *kubelets {
	return &kubelets{refused: map[refusedOn]*kubeletRefusal{}, ask: func(*corev1.Pod) {}, report: func(*corev1.Node, *corev1.Pod, string) {}}
}

func asksOf(s *place.Shape) asks {
	a := asks{requests: s.Requests, cells: s.Cells, exclusive: s.Exclusive, oneRoot: s.OneRoot}
	if n := s.Needs; n != nil {
		a.ephemeral = n.Ephemeral
		if len(n.Extended) > 0 || len(n.Ports) > 0 || n.NICs > 0 {
			a.more = fmt.Sprint(n.Extended, n.Ports, n.NICs)
		}
	}
	return a
}

// refusalOf is why a kubelet did not admit a pod; empty for a pod that was admitted.
func refusalOf(o *corev1.Pod) string {
	if o.Status.Phase != corev1.PodFailed || !strings.HasPrefix(o.Status.Message, "Pod was rejected") {
		return ""
	}
	return o.Status.Reason
}

// refusalReasons are the reasons that the metric names; a reason may carry the name of a resource.
var refusalReasons = []string{"OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "TopologyAffinityError", "UnexpectedAdmissionError", "NodeAffinity",
	"NodePorts", "NodeShutdown", "Evicted"}

// ended looks at a pod of ours that is over. One that was bound and never ran may have been refused: the watch, which shows pods that are not over, does not say
// so, so it is asked for.
func (k *kubelets) ended(c *core, p *pod) {
	o := p.object
	if p.stage == bound && c.serves(o) && o.DeletionTimestamp == nil && (o.Status.Phase == corev1.PodPending || o.Status.Phase == "") {
		k.ask(o)
	}
}

// note takes over that a pod failed, and penalises the node if its kubelet refused it.
func (k *kubelets) note(c *core, o *corev1.Pod) {
	reason := refusalOf(o)
	n := c.nodes[o.Spec.NodeName]
	if reason == "" || !c.serves(o) || n == nil || n.node == nil {
		return
	}
	r := c.requestOf(o)
	s := shapeOf(o, &r, "")
	on := refusedOn{o.Spec.NodeName, asksOf(&s)}
	x := k.refused[on]
	if x == nil {
		x = &kubeletRefusal{}
		k.refused[on] = x
	}
	now := c.now()
	if x.reason = reason; !now.Before(x.until) { // a pod that was bound before the penalty began does not prolong it
		penalty := min(firstPenalty<<min(x.times, 10), mostPenalty)
		x.times++
		x.until, x.ended = now.Add(penalty), false
		k.report(n.node, o, fmt.Sprintf("the kubelet refused pod %s: %s; no pod that asks for the same is placed here for %s. To fix: compare what the kubelet has with what the Node reports",
			name(o), firstOf(o.Status.Message, reason), penalty))
	}
	c.metrics.kubelets.WithLabelValues(knownReason(reason)).Inc()
}

func knownReason(reason string) string {
	for _, r := range refusalReasons {
		if r == reason {
			return r
		}
	}
	return "other"
}

// firstOf is a message without its standing first words, at most as long as an event shows; else the reason.
func firstOf(message, reason string) string {
	const most = 300
	text := strings.TrimPrefix(message, "Pod was rejected: ")
	if text == "" {
		return reason
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return reason + ": " + text
}

// of is the refusal of a class's pods on a node; nil for none.
func (k *kubelets) of(c *core, class place.ClassID, node string) *kubeletRefusal {
	if len(k.refused) == 0 {
		return nil
	}
	return k.refused[refusedOn{node, c.classes[class]}]
}

// refuses reports whether a node is out for a class now.
func (k *kubelets) refuses(c *core, class place.ClassID, node string) bool {
	x := k.of(c, class, node)
	return x != nil && c.now().Before(x.until)
}

// known reports whether any node has refused pods of a class.
func (k *kubelets) known(c *core, class place.ClassID) bool {
	for on := range k.refused {
		if on.asks == c.classes[class] {
			return true
		}
	}
	return false
}

// text says how many nodes are out for a class, after what removed the others; empty for none.
func (k *kubelets) text(c *core, class place.ClassID) string {
	why := map[string]int{}
	for on, x := range k.refused {
		if on.asks == c.classes[class] && c.now().Before(x.until) {
			why[x.reason]++
		}
	}
	out := ""
	for _, reason := range sortedKeys(why) {
		out += fmt.Sprintf(", %d whose kubelet refused such a pod a moment ago: %s", why[reason], reason)
	}
	return out
}

// best is the best node for a class whose kubelet did not refuse such pods; of equal ones the first that never did. It takes the room there.
func (k *kubelets) best(c *core, class place.ClassID) (place.Decision, bool) {
	if !k.known(c, class) {
		return c.table.Decide(class)
	}
	var best *place.Candidate
	for x := range c.table.Candidates(class) {
		if best != nil && x.Score < best.Score {
			break
		}
		if k.refuses(c, class, x.Name) {
			continue
		}
		if clean := k.of(c, class, x.Name) == nil; best == nil || clean {
			best = &x
			if clean {
				break
			}
		}
	}
	if best == nil {
		return place.Decision{}, false
	}
	return c.table.Assume(class, best.Node)
}

// runs takes over that a pod runs: its kubelet admits such pods again.
func (k *kubelets) runs(p *pod) {
	if len(k.refused) > 0 && p.object.Status.Phase == corev1.PodRunning {
		delete(k.refused, refusedOn{p.node, asksOf(&p.shape)})
	}
}

// nodeChanged forgets what a node refused when it offers something else, or is gone.
func (k *kubelets) nodeChanged(before, after *corev1.Node) {
	if len(k.refused) == 0 || before == nil || after != nil && equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) {
		return
	}
	for on := range k.refused {
		if on.node == before.Name {
			delete(k.refused, on)
		}
	}
}

// expire ends penalties: the nodes are looked at again for what waits.
func (k *kubelets) expire(c *core, now time.Time) {
	for on, x := range k.refused {
		switch {
		case now.Before(x.until):
		case !x.ended:
			x.ended = true
			c.touch(on.node)
		case !now.Before(x.until.Add(forgetRefusal)):
			delete(k.refused, on)
		}
	}
}

// askers and mostAsked bound the questions why a pod ended: beyond them a refusal may be missed, and the next one is seen.
const askers, mostAsked = 2, 256

// kubeletAsker reads pods that ended before they ran, and reports those that failed.
func kubeletAsker(ctx context.Context, client kubernetes.Interface, failed func(*corev1.Pod)) func(*corev1.Pod) {
	todo := make(chan *corev1.Pod, mostAsked)
	for range askers {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case o := <-todo:
					if got, err := client.CoreV1().Pods(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{}); err == nil && got.UID == o.UID && got.Status.Phase == corev1.PodFailed {
						failed(got)
					}
				}
			}
		}()
	}
	return func(o *corev1.Pod) {
		select {
		case todo <- o:
		default:
		}
	}
}
