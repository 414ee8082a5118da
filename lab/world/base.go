package world

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
)

//go:embed manifests
var manifests embed.FS

// The priority classes: online over offline high over offline low.
const (
	priorityOnline      = "online"
	priorityOfflineHigh = "offline-high"
	priorityOfflineLow  = "offline-low"
)

// buildBase makes what everything else stands on: CRDs, namespaces and priority classes.
func (w *World) buildBase(ctx context.Context) error {
	namespaces := w.namespaces()
	var writes []write
	crds, err := w.crds()
	if err != nil {
		return err
	}
	for _, definition := range crds {
		writes = append(writes, func(ctx context.Context) error { return w.installCRD(ctx, definition) })
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: namespaces[name]}}
		writes = append(writes, func(ctx context.Context) error {
			if _, err := w.api.core.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("make namespace %s: %w", ns.Name, err)
			}
			return w.awaitServiceAccount(ctx, ns.Name)
		})
	}
	// Offline work never preempts: what it gets is lent to it.
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	for _, c := range []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: priorityOnline}, Value: 100000, PreemptionPolicy: &lower},
		{ObjectMeta: metav1.ObjectMeta{Name: priorityOfflineHigh}, Value: 1000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: priorityOfflineLow}, Value: 100, PreemptionPolicy: &never},
	} {
		writes = append(writes, func(ctx context.Context) error {
			_, err := w.api.core.SchedulingV1().PriorityClasses().Create(ctx, &c, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("make priority class %s: %w", c.Name, err)
			}
			return nil
		})
	}
	return apply(ctx, writes)
}

// awaitServiceAccount waits until pods can be made in a namespace.
func (w *World) awaitServiceAccount(ctx context.Context, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := w.api.core.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace %s: %w", namespace, err)
	}
	return nil
}

// crds reads the product's definitions and the world's own.
func (w *World) crds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var out []*apiextensionsv1.CustomResourceDefinition
	own, err := fs.Sub(manifests, "manifests")
	if err != nil {
		return nil, err
	}
	for _, source := range []fs.FS{own, crd.Files} {
		names, err := fs.Glob(source, "*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := fs.ReadFile(source, name)
			if err != nil {
				return nil, err
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(data, definition); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out = append(out, definition)
		}
	}
	return out, nil
}

// installCRD makes a definition and waits until it is served.
func (w *World) installCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	client := w.api.crds.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := client.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install %s: %w", crd.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s to be served: %w", crd.Name, err)
	}
	return nil
}
