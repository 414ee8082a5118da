package explain

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
)

// explainPod says where a pod is and why, or why it waits. Why it is there stands on the pod since its binding; what would become of one more such pod now,
// the bundled scheduler itself is asked, through the API server.
func explainPod(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	name, err := o.NameOf(c, arg)
	if err != nil {
		return nil, err
	}
	pod, err := c.Core.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, cluster.ReadingOne("pod", name, err)
	}
	p := &screen.Page{Title: "Pod " + name.String()}
	p.Add("Scheduler", "%s", pod.Spec.SchedulerName)
	switch cells := pod.Annotations[v1alpha1.AnnotationCells]; {
	case pod.Spec.NodeName != "" && cells != "":
		p.Add("Node", "%s, NUMA cells %s", pod.Spec.NodeName, cells)
	case pod.Spec.NodeName != "":
		p.Add("Node", "%s", pod.Spec.NodeName)
	case pod.Status.NominatedNodeName != "":
		p.Add("Node", "none yet; %s is being made free for it", pod.Status.NominatedNodeName)
	default:
		p.Add("Node", "none")
	}
	if s := pod.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
		p.Add("Gang", "PodGroup %s", *s.PodGroupName)
	}
	for i := range pod.Status.Conditions {
		if x := &pod.Status.Conditions[i]; x.Type == corev1.PodScheduled && x.Status == corev1.ConditionFalse {
			p.Add("Waits", "%s (%s)", x.Message, x.Reason)
		}
	}
	lines := func(label string, all []string) {
		for _, line := range all {
			p.Add(label, "%s", line)
			label = ""
		}
	}
	if why := pod.Annotations[v1alpha1.AnnotationDecision]; why != "" {
		lines("Decision", strings.Split(why, "; "))
	}
	said, err := askScheduler(ctx, c, o.SchedulerNamespace, name)
	switch {
	case apierrors.IsNotFound(err):
		p.Add("Now", "not known: there is no Service springtide-scheduler in namespace %s to ask; --scheduler-namespace names another one", o.SchedulerNamespace)
	case err != nil:
		p.Add("Now", "not known: the bundled scheduler in namespace %s did not answer: %v", o.SchedulerNamespace, err)
	default:
		lines("Now", strings.Split(strings.TrimSpace(said), "\n"))
	}
	e := &explanation{page: p, Object: pod, Related: map[string]any{"decision": pod.Annotations[v1alpha1.AnnotationDecision], "now": strings.TrimSpace(said)}}
	return e, e.ground(ctx, o, c, "Pod", name)
}

// askTries is how often the service is asked for each lease that is held: it may lead to a process that stands by, or that places other pods.
const askTries = 6

// askScheduler asks the process of the bundled scheduler that places the pod.
func askScheduler(ctx context.Context, c *cluster.Clients, namespace string, name fleet.Name) (string, error) {
	// Without the right to read leases, one is supposed.
	held, last := cluster.SchedulerHolders(ctx, c, namespace)
	var unknown string // what a process says that does not place the pod
	for range askTries * max(1, len(held)) {
		text, err := c.Core.CoreV1().Services(namespace).ProxyGet("http", "springtide-scheduler", "http", "explain", map[string]string{"pod": name.String()}).DoRaw(ctx)
		switch {
		case err == nil:
			return string(text), nil
		case apierrors.IsNotFound(err) && isStatus(text):
			return "", err // the API server's own answer: there is no such Service
		case apierrors.IsNotFound(err) && len(text) > 0:
			unknown = string(text)
		}
		last = err
	}
	if unknown != "" {
		return unknown, nil
	}
	return "", last
}

// isStatus reports whether a text is an answer of the API server itself, and none of the scheduler, which answers in plain words.
func isStatus(text []byte) bool {
	var s metav1.Status
	return json.Unmarshal(text, &s) == nil && s.Kind == "Status"
}
