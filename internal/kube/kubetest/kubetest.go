package kubetest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const Namespace = "springtide-system"

// Now is the present of the tests; the API server of the tests stamps an hour ahead of it, as a wall clock next to a
// virtual one.
var Now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const Skew = time.Hour

// Lease is the UID of the Lease that the tests lead by.
const Lease = types.UID("lease-uid")

// Clock stands at t0, an hour behind the stamps of the API server.
type Clock struct{ Time time.Time }

func (c *Clock) Now() time.Time { return c.Time }

func (c *Clock) At(stamp time.Time) time.Time { return stamp.Add(-Skew) }

func (c *Clock) Park(context.Context, time.Time, bool) error { return nil }

func Stamp(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(Skew - ago)) }

func Ago(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-ago)) }

// Meta is the metadata of an object that was made an hour ago, with a UID made of its kind and name.
func Meta(kind, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: UID(kind, name), ResourceVersion: "100", CreationTimestamp: Stamp(time.Hour)}
}

func UID(kind, name string) types.UID { return types.UID(fmt.Sprintf("%s-%s-uid", kind, name)) }

func OwnedBy(kind, name string) []metav1.OwnerReference {
	yes := true
	version := map[string]string{"DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1", "Node": "v1"}[kind]
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: UID(kind, name), Controller: &yes}}
}

func Ptr[T any](v T) *T { return &v }

func Ready(at metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}
}

func Said(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return out
}
