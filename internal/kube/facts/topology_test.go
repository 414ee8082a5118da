package facts_test

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// What pods can have of a cell's memory is without huge pages and without what its exporter says is reserved there.
func TestMemoryOfACell(t *testing.T) {
	for _, c := range []struct {
		name, resources string
		want            fleet.Bytes
	}{
		{"memory", "[{name: memory, capacity: 64Gi, allocatable: 64Gi}]", 64 * fleet.GiB},
		{"capacity alone", "[{name: memory, capacity: 64Gi}]", 64 * fleet.GiB},
		{"huge pages of two sizes", "[{name: hugepages-1Gi, capacity: 8Gi}, {name: memory, capacity: 64Gi, allocatable: 64Gi}, {name: hugepages-2Mi, capacity: 4Gi}]", 52 * fleet.GiB},
		{"some is reserved, and the huge pages with it", "[{name: memory, capacity: 64Gi, allocatable: 50Gi}, {name: hugepages-1Gi, capacity: 8Gi}]", 50 * fleet.GiB},
		{"more huge pages than memory", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: 8Gi}]", 0},
		{"huge pages beyond all bounds", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: 8Ei}, {name: hugepages-2Mi, capacity: 8Ei}]", 0},
		{"a negative amount of them", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: -8Gi}]", fleet.GiB},
		{"negative allocatable", "[{name: memory, capacity: 1Gi, allocatable: -1}]", fleet.GiB},
		{"none", "[{name: cpu, capacity: 4}]", 0},
	} {
		cells := facts.Cells(parsed(t, fmt.Sprintf(`
apiVersion: topology.node.k8s.io/v1alpha2
kind: NodeResourceTopology
metadata: {name: n1}
zones:
- {name: socket-0, type: Socket}
- {name: node-0, type: Node, parent: socket-0, resources: %s}
`, c.resources)))
		if len(cells) != 1 || cells[0].Capacity.Memory != c.want {
			t.Errorf("%s: %+v, want %d", c.name, cells, c.want)
		}
	}
}
