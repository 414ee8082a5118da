package facts

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/fleet"
)

// The largest amounts that are believed of one machine, pod or cell, and of a quota or another sum that an operator states. Amounts are added up over up to
// a hundred thousand pods and machines, and over a hundred quotas: 2^45 x 2^17 and 2^55 x 2^7 are below 2^63. The largest machine has less than a
// thousandth of them.
const (
	mostOfOne int64 = 1 << 45 // 32 TiB; 35 billion cores in thousandths
	mostOfAll int64 = 1 << 55 // 32 PiB
)

// bounded is what a quantity says in units of 10^scale, rounded up, and no more than most. The quantity's own conversion answers with 0 or a negative number
// where the result does not fit an int64 (0 thousandths for "10P"), so that the largest request would count as none.
func bounded(q *resource.Quantity, scale resource.Scale, most int64) int64 {
	switch limit := resource.NewScaledQuantity(most, scale); {
	case q.Sign() < 0:
		return 0
	case q.Cmp(*limit) >= 0:
		return most
	}
	return q.ScaledValue(scale)
}

// Milli is a quantity of one machine or pod in thousandths, as CPU is counted.
func Milli(q *resource.Quantity) int64 { return bounded(q, resource.Milli, mostOfOne) }

// Count is a quantity of one machine or pod in whole units: bytes, devices, pods.
func Count(q *resource.Quantity) int64 { return bounded(q, 0, mostOfOne) }

// Sum reads the CPU and memory of a quota, a loan or a pool.
func Sum(cpu, memory *resource.Quantity) (fleet.MilliCPU, fleet.Bytes) {
	return fleet.MilliCPU(bounded(cpu, resource.Milli, mostOfAll)), fleet.Bytes(bounded(memory, 0, mostOfAll))
}
