package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// UID is the identity that the API server gave to an object. Names may be used again, a UID never is, so identity is always the UID.
type UID string

// Name is a namespaced name. Cluster-scoped objects have an empty Namespace.
type Name struct{ Namespace, Name string }

// String renders "namespace/name", or the bare name of a cluster-scoped object.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// Compare orders names by namespace, then name.
func (n Name) Compare(o Name) int {
	if c := cmp.Compare(n.Namespace, o.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(n.Name, o.Name)
}

// ParseName reads "namespace/name" or "name".
func ParseName(s string) Name {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return Name{Namespace: ns, Name: name}
	}
	return Name{Name: s}
}

// ServiceID names one online service: the "namespace/name" of its ElasticService.
type ServiceID string

// JobID names one offline elastic job: the "namespace/name" of its ElasticJob.
type JobID string

// PoolID names a CapacityPool.
type PoolID string

// TenantID names a CapacityQuota.
type TenantID string

// NodeID is the UID of a node. A machine that comes back under the same name is another node.
type NodeID UID

// LoanID names a Loan.
type LoanID string

// ParcelID names the capacity that changes pools as one: the node's UID and the list of its NUMA cells, as in "5f0c…:0,1".
type ParcelID string

// MakeParcelID builds the id of the parcel that holds cells of node. The cells are sorted first, so equal sets have equal ids.
func MakeParcelID(node NodeID, cells []int) ParcelID {
	sorted := slices.Sorted(slices.Values(cells))
	parts := make([]string, len(sorted))
	for i, c := range sorted {
		parts[i] = strconv.Itoa(c)
	}
	return ParcelID(string(node) + ":" + strings.Join(parts, ","))
}

// Split returns the node and the cells that the id names.
func (p ParcelID) Split() (NodeID, []int, error) {
	node, list, ok := strings.Cut(string(p), ":")
	if !ok || node == "" || list == "" {
		return "", nil, fmt.Errorf("parcel id %q: want NODE-UID:CELL[,CELL...]", string(p))
	}
	var cells []int
	for s := range strings.SplitSeq(list, ",") {
		c, err := strconv.Atoi(s)
		if err != nil || c < 0 {
			return "", nil, fmt.Errorf("parcel id %q: cell %q is not a number", string(p), s)
		}
		cells = append(cells, c)
	}
	return NodeID(node), cells, nil
}
