package kubetest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is the controller's own.
const Namespace = "springtide-system"

// Now is the present of the tests; the API server of the tests stamps an hour ahead of it, as a wall clock next to a
// virtual one.
var Now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Skew is how far the stamps of the API server are ahead of Now.
const Skew = time.Hour

// Lease is the UID of the Lease that the tests lead by.
const Lease = types.UID("lease-uid")

// Clock stands at t0, an hour behind the stamps of the API server.
type Clock struct{ Time time.Time }

// Now implements loop.Clock.
func (c *Clock) Now() time.Time { return c.Time }

// At implements loop.Clock.
func (c *Clock) At(stamp time.Time) time.Time { return stamp.Add(-Skew) }

// Park implements loop.Clock.
func (c *Clock) Park(context.Context, time.Time, bool) error { return nil }

// Stamp is a stamp of the API server, so long ago.
func Stamp(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(Skew - ago)) }

// Ago is a time of the clock, so long ago.
func Ago(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-ago)) }

// Meta is the metadata of an object that was made an hour ago, with a UID made of its kind and name.
func Meta(kind, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: UID(kind, name), ResourceVersion: "100",
		CreationTimestamp: Stamp(time.Hour)}
}

// UID is the UID that objects of a kind and a name get.
func UID(kind, name string) types.UID { return types.UID(fmt.Sprintf("%s-%s-uid", kind, name)) }

// OwnedBy is the reference to a controller.
func OwnedBy(kind, name string) []metav1.OwnerReference {
	yes := true
	version := map[string]string{"DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1", "Node": "v1"}[kind]
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: UID(kind, name), Controller: &yes}}
}

// Ptr is a pointer to a value.
func Ptr[T any](v T) *T { return &v }

// Ready is the condition of a pod that is ready since a time.
func Ready(at metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}
}

// Said renders conditions as Type=Status/Reason.
func Said(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return out
}
