package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// The list of the moment counts in which the pod is bound; a pod that was bound before is not judged.
func TestImagesAreJudgedWhenAPodIsBound(t *testing.T) {
	n := kubetest.Node("n1", kubetest.InWeb)
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"reg.example/cart:2"}}}
	objects := append(kubetest.Shop()[1:], n)
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok {
			p.Spec.Containers[0].Image = "reg.example/cart:2"
		}
	}
	pulled := kubetest.Pod("shop", "cart-d", "", "ReplicaSet", "cart-2")
	pulled.Spec.Containers[0].Image = "reg.example/cart:3"
	w := newWorld(t, append(objects, pulled)...)
	for _, name := range []string{"cart-c", "cart-d"} {
		if _, err := w.core.CoreV1().Pods("shop").Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"nodeName":"n1"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]fleet.Known[bool]{"cart-a": {}, "cart-b": {}, "cart-c": {Value: true, OK: true}, "cart-d": {OK: true}}
	var got map[string]fleet.Known[bool]
	for range 500 { // the watch needs a moment
		got = map[string]fleet.Known[bool]{}
		for _, p := range w.snapshot(t).Service("shop/cart").Pods {
			got[p.Name.Name] = p.ImagePresent
		}
		if cmp.Equal(got, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("judged %v, want %v", got, want)
}
