package target

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// Subresource is the subresource by which any kind is scaled.
const Subresource = "scale"

// Builtin reports whether a target is a Deployment or a StatefulSet: those are watched always, by their types.
func Builtin(ref *v1alpha1.TargetRef) bool {
	return GroupOf(ref.APIVersion, ref.Kind) == appsv1.GroupName && (ref.Kind == "Deployment" || ref.Kind == "StatefulSet")
}

// GroupOf is the API group of a reference. References of old manifests name Deployments of extensions, or no group.
func GroupOf(apiVersion, kind string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	switch {
	case (group == "" || group == "extensions") && (kind == "Deployment" || kind == "StatefulSet"):
		return appsv1.GroupName
	case group == "" && kind == "HorizontalPodAutoscaler":
		return autoscalingv1.GroupName
	}
	return group
}

// groupVersion reads an apiVersion; false where it is none.
func groupVersion(text string) (schema.GroupVersion, bool) {
	gv, err := schema.ParseGroupVersion(text)
	return gv, err == nil
}

// Find finds the resource of a kind by discovery. The problem says why objects of the kind cannot be targets.
func Find(d discovery.DiscoveryInterface, apiVersion, kind string) (schema.GroupVersionResource, fleet.Problem, error) {
	var none schema.GroupVersionResource
	unknown := catalog.TargetKindUnknown.Of(kind, apiVersion)
	gv, ok := groupVersion(apiVersion)
	if !ok {
		return none, unknown, nil
	}
	list, err := d.ServerResourcesForGroupVersion(apiVersion)
	switch {
	case apierrors.IsNotFound(err), err == nil && list == nil:
		return none, unknown, nil
	case err != nil:
		return none, fleet.Problem{}, fmt.Errorf("ask for the kinds of %s: %w", apiVersion, err)
	}
	resource, namespaced, scalable := "", false, map[string]bool{}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		switch name, sub, isSub := strings.Cut(r.Name, "/"); {
		case isSub && sub == Subresource:
			scalable[name] = true
		case !isSub && r.Kind == kind && resource == "":
			resource, namespaced = r.Name, r.Namespaced
		}
	}
	switch {
	case resource == "":
		return none, catalog.TargetKindUnknown.Of(kind, apiVersion), nil
	case !namespaced:
		return none, catalog.TargetOfNoNamespace.Of(kind, apiVersion), nil
	case !scalable[resource]:
		return none, catalog.TargetNotScalable.Of(kind, apiVersion), nil
	}
	return gv.WithResource(resource), fleet.Problem{}, nil
}
