//go:build plane

package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestPlaneRoomThatCameHome: a pod that waits is bound once the room is home, by the share alone. Its loan is never forgotten here, so its entry stays in the share; the
// taint stays on the node too. Machines have 64 cores on two sockets, pods ask for 20. How long it took from the write of the share is logged.
func TestPlaneRoomThatCameHome(t *testing.T) {
	c := connect(t)
	h := c.homes()
	serve(t, "names: [home]\nleaseNamespace: default\nleaseDuration: 5s\n")
	for _, x := range []struct {
		name          string
		sockets       bool
		before, after []any
		bound         int // of four pods
	}{
		{"unknown", false, parcels("l batch web 0"), parcels("l web - 0"), 3},
		{"whole", true, parcels("l batch web 0 1 2 3"), parcels("l web - 0 1 2 3"), 3},
		{"socket", true, parcels("l batch web 2 3"), parcels("l web - 2 3"), 3},
		{"drains", true, parcels("k batch web 0 1", "l batch web 2 3"), parcels("k batch web 0 1", "l web - 2 3"), 1},
		{"lent", true, parcels("k batch - 0 1", "l batch web 2 3"), parcels("k batch - 0 1", "l web - 2 3"), 1},
		{"called-off", true, parcels("l web batch 0 1 2 3"), parcels("l web - 0 1 2 3"), 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, h := c.of(t), h.of(t)
			node := planetest.Node("home-"+x.name, map[string]string{"for": "home", "case": x.name})
			node.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
			c.node(node)
			if x.sockets {
				h.topology(node.Name)
			}
			h.share(node.Name, x.before)
			names := []string{}
			for i := range 4 {
				p := pod(fmt.Sprintf("home-%s-%d", x.name, i), "20")
				p.Spec.SchedulerName, p.Spec.NodeSelector = "home", map[string]string{"case": x.name}
				c.pod(p)
				names = append(names, p.Name)
			}
			for _, name := range names {
				c.until(name, "no room", unschedulable)
			}
			began := time.Now()
			h.returned(node.Name, x.after)
			bound := func() int {
				return len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.get(name).Spec.NodeName == "" }))
			}
			c.poll(fmt.Sprintf("%d pods on what is home", x.bound), func(context.Context) (bool, error) { return bound() >= x.bound, nil })
			t.Logf("%d pods are bound %s after the room was home", x.bound, time.Since(began).Round(time.Millisecond))
			time.Sleep(time.Second)
			if got := bound(); got != x.bound {
				t.Errorf("%d pods are bound, and the cells at home hold %d", got, x.bound)
			}
		})
	}
}

// homes makes pools, shares and topologies.
type homes struct {
	t   *testing.T
	dyn dynamic.Interface
	api *cluster
}

func (h *homes) of(t *testing.T) *homes { return &homes{t, h.dyn, h.api.of(t)} }

// homes installs our kinds and the pools web and batch; they go with the test.
func (c *cluster) homes() *homes {
	c.t.Helper()
	h := &homes{c.t, dynamic.NewForConfigOrDie(c.cfg), c}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	texts := [][]byte{}
	for _, name := range []string{"capacitypools", "nodeshares"} {
		text, err := crd.Files.ReadFile("springtide.dev_" + name + ".yaml")
		if err != nil {
			c.t.Fatal(err)
		}
		texts = append(texts, text)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "lab", "world", "manifests", "noderesourcetopology.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, text := range append(texts, text) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			c.t.Fatal(err)
		}
		if _, err := h.dyn.Resource(definitions).Create(c.t.Context(), u, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() {
			_ = h.dyn.Resource(definitions).Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
		})
	}
	for _, gvr := range []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("capacitypools"), v1alpha1.GroupVersion.WithResource("nodeshares"), facts.Topologies} {
		c.poll(gvr.Resource+" are served", func(ctx context.Context) (bool, error) {
			_, err := h.dyn.Resource(gvr).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	}
	for name, class := range map[string]string{"web": "Online", "batch": "Offline"} {
		label := map[string]any{"for": map[string]string{"web": "home", "batch": "nothing"}[name]}
		h.create("capacitypools", "CapacityPool", name, map[string]any{"spec": map[string]any{"class": class, "nodeSelector": map[string]any{"matchLabels": label}, "schedulerName": "home"}})
	}
	return h
}

func (h *homes) create(resource, kind, name string, content map[string]any) {
	h.t.Helper()
	gvr, u := v1alpha1.GroupVersion.WithResource(resource), &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(gvr.GroupVersion().String())
	if kind == "NodeResourceTopology" {
		gvr = facts.Topologies
		u.SetAPIVersion(gvr.GroupVersion().String())
	}
	u.SetKind(kind)
	u.SetName(name)
	if _, err := h.dyn.Resource(gvr).Create(h.t.Context(), u, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *homes) topology(node string) {
	var zones []any
	for s := range 2 {
		zones = append(zones, map[string]any{"name": fmt.Sprint("socket-", s), "type": "Socket"})
	}
	for c := range 4 {
		room := func(name, amount string) any {
			return map[string]any{"name": name, "capacity": amount, "allocatable": amount, "available": amount}
		}
		zones = append(zones, map[string]any{"name": fmt.Sprint("node-", c), "type": "Node", "parent": fmt.Sprint("socket-", c/2), "resources": []any{room("cpu", "16"), room("memory", "64Gi")}})
	}
	h.create("noderesourcetopologies", "NodeResourceTopology", node, map[string]any{"topologyPolicies": []any{"None"}, "zones": zones})
}

func (h *homes) share(node string, parcels []any) {
	n, err := h.api.api.CoreV1().Nodes().Get(h.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.create("nodeshares", "NodeShare", node, map[string]any{"spec": map[string]any{"nodeUID": string(n.UID), "parcels": parcels}})
}

func (h *homes) returned(node string, parcels []any) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"parcels": parcels}})
	if err == nil {
		_, err = h.dyn.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).Patch(h.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// parcels reads entries of a share: loan, holder, next ("-" for none) and cells.
func parcels(texts ...string) []any {
	var out []any
	for _, text := range texts {
		var loan, holder, next string
		var cells [4]int64
		n, _ := fmt.Sscan(text, &loan, &holder, &next, &cells[0], &cells[1], &cells[2], &cells[3])
		list := []any{}
		for i := range n - 3 {
			list = append(list, cells[i])
		}
		p := map[string]any{"cells": list, "holder": holder, "loanName": loan, "loanUID": loan, "epoch": int64(2)}
		if next != "-" {
			p["next"] = next
		}
		out = append(out, p)
	}
	return out
}
