package host

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// Modes of the topology report.
const (
	// TopologyWrite has the agent write the NodeResourceTopology; it takes over one of another exporter.
	TopologyWrite = "Write"
	// TopologyRead leaves the object to another exporter, such as NFD's topology updater.
	TopologyRead = "Read"
	// TopologyOff has the agent neither write nor expect it.
	TopologyOff = "Off"
)

// TopologyObject is the machine as a NodeResourceTopology: a zone for each socket, one for each cell beneath it, one for each GPU and NIC beneath
// their cell. Everything in it changes only with the hardware, so that it is written once.
func TopologyObject(node string, uid types.UID, t *shape.Topology) *unstructured.Unstructured {
	var zones []any
	for _, socket := range t.Sockets() {
		var cpus, cells shape.Set
		for i := range t.Cells {
			if t.Cells[i].Socket == socket {
				cpus, cells = cpus.Union(t.Cells[i].CPUs), cells.Union(shape.Set{t.Cells[i].ID})
			}
		}
		zones = append(zones, map[string]any{"name": fmt.Sprintf("socket-%d", socket), "type": "Socket",
			"attributes": attributes("cpus", cpus.String(), "cells", cells.String())})
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		zone := map[string]any{"name": fmt.Sprintf("node-%d", c.ID), "type": "Node", "parent": fmt.Sprintf("socket-%d", c.Socket)}
		resources := []any{amount("cpu", strconv.Itoa(len(c.CPUs))), amount("memory", strconv.FormatInt(int64(c.Memory), 10))}
		for _, h := range c.HugePages {
			resources = append(resources, amount("hugepages-"+binary(h.Bytes), strconv.FormatInt(int64(h.Bytes)*h.Count, 10)))
		}
		gpus := map[string]int{}
		for _, d := range t.Devices {
			if d.Kind == shape.DeviceGPU && d.Cell == c.ID {
				gpus[d.Resource]++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(gpus)) {
			resources = append(resources, amount(name, strconv.Itoa(gpus[name])))
		}
		zone["resources"] = resources
		var costs []any
		for j, d := range c.Distances {
			if j < len(t.Cells) {
				costs = append(costs, map[string]any{"name": fmt.Sprintf("node-%d", t.Cells[j].ID), "value": int64(d)})
			}
		}
		if costs != nil {
			zone["costs"] = costs
		}
		attrs := []string{"cpus", c.CPUs.String(), "socket", strconv.Itoa(c.Socket)}
		var siblings, efficient shape.Set
		for k := range t.CPUs {
			cpu := &t.CPUs[k]
			if cpu.Cell == c.ID && cpu.ID != cpu.Siblings[0] {
				siblings = append(siblings, cpu.ID)
			}
			if cpu.Cell == c.ID && cpu.Kind == "efficiency" {
				efficient = append(efficient, cpu.ID)
			}
		}
		attrs = append(attrs, "secondThreads", siblings.String(), "efficiencyCPUs", efficient.String())
		for _, cache := range t.Caches {
			if cache.Level == 3 && len(cache.CPUs.Intersect(c.CPUs)) > 0 {
				attrs = append(attrs, "l3-"+cache.CPUs.String(), strconv.FormatInt(int64(cache.Bytes), 10))
			}
		}
		zone["attributes"] = attributes(attrs...)
		zones = append(zones, zone)
	}
	for _, d := range t.Devices {
		zone := map[string]any{"name": d.Address, "type": d.Kind, "attributes": attributes("device", d.Name, "pcieRoot", d.Root)}
		if d.Cell >= 0 {
			zone["parent"] = fmt.Sprintf("node-%d", d.Cell)
		}
		zones = append(zones, zone)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"topologyPolicies": []any{"None"}, "zones": zones,
		"attributes": attributes("springtide.dev/reporter", "springtide-agent", "offlineCPUs", t.Offline.String())}}
	u.SetAPIVersion(facts.Topologies.GroupVersion().String())
	u.SetKind("NodeResourceTopology")
	u.SetName(node)
	if uid != "" {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}})
	}
	return u
}

// attributes are pairs of name and value; those without a value are left out.
func attributes(pairs ...string) []any {
	var out []any
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, map[string]any{"name": pairs[i], "value": pairs[i+1]})
		}
	}
	return out
}

func amount(name, quantity string) map[string]any {
	return map[string]any{"name": name, "capacity": quantity, "allocatable": quantity, "available": quantity}
}

// binary renders a size of huge pages as Kubernetes names it: 2Mi, 1Gi.
func binary(b fleet.Bytes) string {
	switch {
	case b >= 1<<30 && b%(1<<30) == 0:
		return fmt.Sprintf("%dGi", b>>30)
	case b >= 1<<20 && b%(1<<20) == 0:
		return fmt.Sprintf("%dMi", b>>20)
	}
	return fmt.Sprintf("%dKi", b>>10)
}

// writeTopology makes the object say what is wanted, and reports whether it wrote.
func writeTopology(ctx context.Context, c dynamic.Interface, want *unstructured.Unstructured) (bool, error) {
	objects := c.Resource(facts.Topologies)
	has, err := objects.Get(ctx, want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, want, metav1.CreateOptions{FieldManager: fieldManager})
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	same := true
	for _, field := range []string{"zones", "attributes", "topologyPolicies"} {
		same = same && reflect.DeepEqual(has.Object[field], want.Object[field])
	}
	if same {
		return false, nil
	}
	next := want.DeepCopy()
	next.SetResourceVersion(has.GetResourceVersion())
	_, err = objects.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
	return err == nil, err
}
