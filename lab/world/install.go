package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/base"
)

// controllerAccount is the service account that the product's manifests give rights to; the controllers run with no
// other rights.
const controllerAccount = "system:serviceaccount:" + systemNamespace + ":springtide-controller"

// install applies the product's own manifests, as its user would.
func (w *World) install(ctx context.Context) error {
	mapper, err := w.mapper()
	if err != nil {
		return err
	}
	names, err := fs.Glob(base.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(base.Files, name)
		if err != nil {
			return err
		}
		if err := w.installAll(ctx, mapper, data, nil); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	return nil
}

// mapper knows the kinds that are served now.
func (w *World) mapper() (meta.RESTMapper, error) {
	groups, err := restmapper.GetAPIGroupResources(w.api.core.Discovery())
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

// installAll makes the objects of one manifest, each changed before by change, when that is given.
func (w *World) installAll(ctx context.Context, mapper meta.RESTMapper, manifest []byte, change func(*unstructured.Unstructured) error) error {
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(manifest)))
	defer documents.Close()
	buffer := make([]byte, len(manifest)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(buffer[:n], &u.Object); err != nil {
			return err
		}
		if len(u.Object) == 0 {
			continue // a comment
		}
		if change != nil {
			if err := change(u); err != nil {
				return err
			}
		}
		kind := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		_, err = w.api.dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, u.GetName(), err)
		}
	}
}
