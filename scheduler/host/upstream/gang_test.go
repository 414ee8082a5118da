package upstream

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/scheduler/host"
)

// TestAGangIsJudgedTogether: pods that are judged together share the claim that is reserved for the first of them, and
// no device twice; others do not. The others still hold what one gives back, and once all did, another pod has it.
func TestAGangIsJudgedTogether(t *testing.T) {
	j, _ := judgeOf(t, gadgets(), "n0") // it has one device
	pod := func(name, namespace string) *corev1.Pod {
		claim := "wanted"
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app"}}, ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}}}
	}
	reserve := func(p *corev1.Pod) (host.Trial, error) {
		trial, err := j.Begin(t.Context(), p)
		if err == nil {
			if err = trial.Check(t.Context(), "n0"); err == nil {
				err = trial.Reserve(t.Context(), "n0")
			}
		}
		return trial, err
	}
	// Claims and slices reach the plugin on ways of their own.
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		trial, err := reserve(pod("first", "x"))
		if err == nil {
			trial.Unreserve(t.Context(), "n0")
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
	end := j.Gang()
	one, err := reserve(pod("one", "x"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := reserve(pod("two", "x"))
	if err != nil {
		t.Fatalf("the second pod does not share the claim: %v", err)
	}
	if _, err := reserve(pod("other", "y")); err == nil {
		t.Error("the device is given out twice within a gang")
	}
	end()
	if _, err := reserve(pod("late", "x")); err == nil {
		t.Error("a pod that is not judged with them shares a claim that is not allocated yet")
	}
	one.Unreserve(t.Context(), "n0")
	if _, err := reserve(pod("other", "y")); err == nil {
		t.Error("the device is given out while one pod of two holds its claim")
	}
	two.Unreserve(t.Context(), "n0")
	if _, err := reserve(pod("other", "y")); err != nil {
		t.Errorf("the device was given back: %v", err)
	}
}
