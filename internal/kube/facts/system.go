package facts

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// Kind names a kind of objects by its API version, as in "apps.kruise.io/v1alpha1", and its name.
type Kind struct{ APIVersion, Kind string }

// KindDaemonSet owns pods of the system on every cluster; configuration adds other kinds.
var KindDaemonSet = Kind{appsv1.SchemeGroupVersion.String(), "DaemonSet"}

// kindNode owns the pods that a kubelet runs from files.
var kindNode = Kind{corev1.SchemeGroupVersion.String(), "Node"}

// ResourceOf finds the resource of a kind, if the cluster has it.
func ResourceOf(d discovery.DiscoveryInterface, k Kind) (schema.GroupVersionResource, bool) {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	list, err := d.ServerResourcesForGroupVersion(k.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Kind == k.Kind && !strings.Contains(r.Name, "/") {
			return gv.WithResource(r.Name), true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Owner is the controller of a pod, as the pod says.
type Owner struct {
	Kind
	Name string
	UID  types.UID
}

// OwnerOf reads the controller of an object; zero where it names none.
func OwnerOf(o metav1.Object) Owner {
	if r := metav1.GetControllerOf(o); r != nil {
		return Owner{Kind{r.APIVersion, r.Kind}, r.Name, r.UID}
	}
	return Owner{}
}

// Witness finds the objects that only the cluster's operators can make.
type Witness interface {
	// IsTenant reports whether a namespace belongs to an offline tenant.
	IsTenant(namespace string) bool
	// IsDaemonKind reports whether configuration adds a kind to KindDaemonSet.
	IsDaemonKind(kind Kind) bool
	// DaemonUID finds an object of KindDaemonSet or of an added kind; empty where there is none.
	DaemonUID(kind Kind, namespace, name string) types.UID
	// NodeUID finds a node; empty where there is none.
	NodeUID(name string) types.UID
}

// Standing says whether a pod is of the system: nothing that the pod says of itself is believed without an object that only the cluster's
// operators can make.
type Standing string

const (
	// ClaimsNothing: the pod does not say that it is of the system, or its witness is missing.
	ClaimsNothing Standing = ""
	// IsSystem: it says so, and the DaemonSet or the machine that it names is there.
	IsSystem Standing = "system"
	// Pretends: it says so in an offline tenant's namespace, where nothing is of the system.
	Pretends Standing = "pretends"
)

// PodClaim is what a pod says of whose it is.
type PodClaim struct {
	Namespace, NodeName string
	Owner               Owner
	// Mirror: the pod carries the annotation of those that the kubelet makes of a file.
	Mirror bool
	// Component is the value of our own component label.
	Component string
	// Tolerates: the pod names the holder taint in a toleration.
	Tolerates bool
}

// ClaimOf reads a pod's claim.
func ClaimOf(p *corev1.Pod) PodClaim {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return PodClaim{Namespace: p.Namespace, NodeName: p.Spec.NodeName, Owner: OwnerOf(p), Mirror: mirror,
		Component: p.Labels[v1alpha1.LabelComponent], Tolerates: ToleratesHolder(p.Spec.Tolerations)}
}

// Standing judges the pods that say by an owner or by the kubelet's annotation that they are of the system. A recall waits for none of
// the system's pods and evicts none, so a tenant must not get such a pod past it: neither by writing an owner that does not exist, nor by a
// DaemonSet of its own.
func (c *PodClaim) Standing(w Witness) Standing {
	o := &c.Owner
	// A kind named DaemonSet of any API says so too: in a tenant's namespace such a pod pretends.
	if o.Kind.Kind != KindDaemonSet.Kind && !w.IsDaemonKind(o.Kind) && !c.Mirror && o.Kind.Kind != kindNode.Kind {
		return ClaimsNothing
	}
	if w.IsTenant(c.Namespace) {
		return Pretends
	}
	var witness types.UID
	switch {
	case o.Kind == KindDaemonSet || w.IsDaemonKind(o.Kind):
		witness = w.DaemonUID(o.Kind, c.Namespace, o.Name)
	case c.Mirror && o.Kind == kindNode && o.Name == c.NodeName:
		// The kubelet names its own machine as the owner of what it runs from a file.
		witness = w.NodeUID(o.Name)
	}
	if witness != "" && witness == o.UID {
		return IsSystem
	}
	return ClaimsNothing
}

// Class says what a pod is to us. Our own label counts in our own namespace alone, so that no tenant can declare a pod
// to be a filler or part of the system. A pod that pretends to be of the system in an offline tenant's namespace is
// offline work, whatever it tolerates: it came to its machine by the tenant's will, and a recall must be able to evict
// it. A pod of a service is online whatever it tolerates.
func (c *PodClaim) Class(namespace string, s Standing, ofService, ofJob bool) fleet.PodClass {
	ours := c.Namespace == namespace
	switch {
	case ours && c.Component == v1alpha1.ComponentFiller:
		return fleet.PodFiller
	case s == IsSystem, ours && c.Component != "":
		return fleet.PodSystem
	case ofService:
		return fleet.PodOnline
	case ofJob, c.Tolerates, s == Pretends:
		return fleet.PodOffline
	}
	return fleet.PodOnline
}
