package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/base/agent"
	"github.com/springtide/springtide/lab/node"
)

// RealNode says how one machine of the fleet is run by a real kubelet.
type RealNode struct {
	// Image is what the virtual machine starts from.
	Image node.Image
	// Agent is an OCI archive with the node agent's image, of the name that its manifest asks for.
	Agent string
}

const (
	// realMemory (GiB) lets the fleet's pods fit: they ask for 3 GiB with each core. The pages are taken from this machine as the guest uses them,
	// and no process of a pod uses more than a few MiB.
	realMemory = 32
	// realPatience bounds the way to Ready, and how long the clock waits for the kubelet to start or end one pod.
	realPatience = 3 * time.Minute
	podPatience  = 45 * time.Second
	// fillerImage is the image of the controller's fillers.
	fillerImage = "registry.k8s.io/pause:3.10"
)

// startKubelet boots the real machine, joins it under the name and labels of its place in the fleet, and installs its agent. The world plays
// neither its pods nor its node side: the kubelet and the agent do.
func (w *World) startKubelet(ctx context.Context) error {
	if w.options.RealNode == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, realPatience)
	defer cancel()
	begin := time.Now()
	m := &w.machines[0]
	dir := filepath.Join(w.dir, "node")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	vm, err := node.Start(ctx, w.options.RealNode.Image, node.Options{Dir: dir, MemoryMiB: realMemory << 10})
	if err != nil {
		return fmt.Errorf("start the real machine: %w", err)
	}
	w.onClose(vm.Stop)
	w.options.Progress(fmt.Sprintf("the real machine runs (%.1fs)", time.Since(begin).Seconds()))
	if err := w.loadImages(ctx, vm); err != nil {
		return fmt.Errorf("load the real machine's images: %w", err)
	}
	id, err := w.plane.Node(m.name)
	if err != nil {
		return err
	}
	if err := vm.Join(ctx, id, map[string]string{labelPool: m.pool, corev1.LabelTopologyZone: m.zone}); err != nil {
		return fmt.Errorf("join the real machine: %w", err)
	}
	if err := w.awaitReady(ctx, m.name); err != nil {
		return errors.Join(fmt.Errorf("the real machine is not Ready: %w", err), errors.New(vm.Tail()))
	}
	w.options.Progress(fmt.Sprintf("the real machine is Ready as %s (%.1fs)", m.name, time.Since(begin).Seconds()))
	if w.options.NoAgents {
		return nil
	}
	if err := w.installAgent(ctx, m.name); err != nil {
		return fmt.Errorf("install the real machine's agent: %w", err)
	}
	w.options.Progress(fmt.Sprintf("the agent of %s shows life (%.1fs)", m.name, time.Since(begin).Seconds()))
	return nil
}

// loadImages gives the machine the agent's image, and the work image under the names that the fleet's pods ask for.
func (w *World) loadImages(ctx context.Context, vm *node.Machine) error {
	if !w.options.NoAgents {
		if err := vm.LoadImage(ctx, w.options.RealNode.Agent); err != nil {
			return err
		}
	}
	for _, name := range []string{image, fillerImage} {
		if err := vm.TagImage(ctx, node.WorkImage, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) awaitReady(ctx context.Context, name string) error {
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		n, err := w.api.core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not registered yet; a server that is gone is found by others
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
}

// installAgent applies the agent's manifests, for this machine alone: the others' node sides are played. It returns when the agent's Lease is there.
func (w *World) installAgent(ctx context.Context, name string) error {
	mapper, err := w.mapper()
	if err != nil {
		return err
	}
	var list struct {
		Resources []string
		Images    []struct{ NewName, NewTag string }
	}
	data, err := fs.ReadFile(agent.Files, "kustomization.yaml")
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, &list); err != nil || len(list.Images) != 1 {
		return errors.Join(fmt.Errorf("the agent's kustomization names %d images, want one", len(list.Images)), err)
	}
	for _, file := range list.Resources {
		if data, err = fs.ReadFile(agent.Files, file); err != nil {
			return err
		}
		err = w.installAll(ctx, mapper, data, func(u *unstructured.Unstructured) error {
			switch u.GetKind() {
			case "ConfigMap":
				return shortenWaits(u)
			case "DaemonSet":
				pods := []string{"spec", "template", "spec"}
				return errors.Join(
					unstructured.SetNestedStringMap(u.Object, map[string]string{corev1.LabelHostname: name}, append(pods, "nodeSelector")...),
					setContainer(u, list.Images[0].NewName+":"+list.Images[0].NewTag, append(pods, "containers")...))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("install %s: %w", file, err)
		}
	}
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := w.api.core.CoordinationV1().Leases(systemNamespace).Get(ctx, v1alpha1.AgentLeasePrefix+name, metav1.GetOptions{})
		return err == nil, nil
	})
}

// shortenWaits has the agent look each second and keep a margin of one: the world's clock stands meanwhile.
func shortenWaits(u *unstructured.Unstructured) error {
	const file = "agent.yaml"
	text, _, err := unstructured.NestedString(u.Object, "data", file)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(u.Object, text+"interval: 1s\ncleanMargin: 1s\n", "data", file)
}

// setContainer names the image of a workload's first container, as kustomize does for users, and takes its requests away: pods of the fleet ask for
// all eight cores of the real machine.
func setContainer(u *unstructured.Unstructured, image string, containers ...string) error {
	list, _, err := unstructured.NestedSlice(u.Object, containers...)
	if err != nil || len(list) == 0 {
		return errors.Join(fmt.Errorf("%s %s has no container", u.GetKind(), u.GetName()), err)
	}
	first := list[0].(map[string]any)
	first["image"] = image
	delete(first, "resources")
	return unstructured.SetNestedSlice(u.Object, list, containers...)
}
