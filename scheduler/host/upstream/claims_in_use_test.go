package upstream

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/scheduler/host"
)

// A claim of ReadWriteOncePod is in use as long as a pod on a node has it, also where another pod of it was on a node
// that went first, whichever is seen to go, and when.
func TestAClaimStaysInUse(t *testing.T) {
	for name, steps := range map[string][]string{
		"the node goes, then its pod":           {"ask", "-node", "ask", "-pod", "ask"},
		"the pod goes, then its node":           {"ask", "-pod", "ask", "-node", "ask"},
		"both go between two questions":         {"ask", "-node", "-pod", "ask"},
		"the node goes and is back, no pod yet": {"ask", "-node", "ask", "+node", "ask", "-pod", "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(append(append(storage(), namespace("z", "")), gadgets()...)...)
			options := host.PluginOptions{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)}
			_, judge := newTheirs(t, &options)
			node := func(name string) *corev1.Node {
				return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
					Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "b"}}}
			}
			serial := 0
			pod := func(node string) *corev1.Pod {
				serial++
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: fmt.Sprint("p", serial),
					UID: types.UID(fmt.Sprint("p", serial))}}
				p.Spec.NodeName = node
				p.Spec.Containers = []corev1.Container{{Name: "app"}}
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "single-b"}}}}
				return p
			}
			judge.SetNode(node("n0"))
			judge.SetNode(node("n1"))
			stays, goes := pod("n0"), pod("n1")
			judge.SetPod(stays)
			judge.SetPod(goes)
			for i, step := range steps {
				switch step {
				case "-node":
					judge.RemoveNode("n1")
				case "+node":
					judge.SetNode(node("n1"))
				case "-pod":
					judge.RemovePod(goes.UID)
				case "ask":
					h := &history{judge: judge, nodes: map[string]*corev1.Node{"n0": node("n0")}}
					if fits := h.ours(t.Context(), pod("")); len(fits) > 0 {
						t.Fatalf("step %d: the claim is used on n0, and another pod of it fits %v", i, fits)
					}
				}
			}
		})
	}
}
