package world

import (
	"context"
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/api/v1alpha1"
)

// api is the world's way to the API server.
type api struct {
	core    kubernetes.Interface
	dynamic dynamic.Interface
	crds    apiextensions.Interface
	kinds   *runtime.Scheme
}

// connect makes the clients. Kubernetes' own kinds travel as protobuf: it costs a fraction of JSON on both sides, and the lab shares its
// cores with the control plane.
func connect(config *rest.Config) (*api, error) {
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	crds, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		return nil, err
	}
	return &api{core: core, dynamic: dyn, crds: crds, kinds: kinds}, nil
}

// own is the client of one of the product's kinds.
func (a *api) own(resource, namespace string) dynamic.ResourceInterface {
	client := a.dynamic.Resource(v1alpha1.GroupVersion.WithResource(resource))
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

// object is what all kinds of the product are.
type object interface {
	runtime.Object
	metav1.Object
}

// create makes an object of the product.
func (a *api) create(ctx context.Context, resource string, o object) error {
	kinds, _, err := a.kinds.ObjectKinds(o)
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", resource, o.GetName(), err)
	}
	delete(fields, "status") // not ours to write
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kinds[0])
	if _, err := a.own(resource, o.GetNamespace()).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make %s %s: %w", resource, o.GetName(), err)
	}
	return nil
}

// merge merges a patch into an object of the product, or into one of its subresources.
func (a *api) merge(ctx context.Context, resource, namespace, name string, patch any, subresources ...string) error {
	_, err := a.own(resource, namespace).Patch(ctx, name, types.MergePatchType, mustJSON(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", resource, name, err)
	}
	return nil
}
