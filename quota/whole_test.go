package quota

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// A wish that fits is granted to the byte: shares are fractions of wishes, and a wish of terabytes that lost a byte on
// the way would read as short, with a notice to its tenant and a recall from the borrower.
func TestAWishThatFitsIsGrantedWhole(t *testing.T) {
	cores := func(n int64) fleet.Resources {
		return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: 3 * fleet.GiB * fleet.Bytes(n)}
	}
	for k := range int64(500) {
		var in Input
		in.At = now
		total := fleet.Resources{}
		for i := range int64(5) {
			id := fleet.TenantID(fmt.Sprintf("t%d", i))
			own, wish := cores(100+(37*i+11*k)%90), cores(60+(53*i+29*k)%130)
			in.Tenants = append(in.Tenants, fleet.Tenant{ID: id, Accepted: true, Guarantee: own})
			in.Wants = append(in.Wants, Want{Tenant: id, Now: wish})
			total = total.Add(wish.Max(own))
		}
		in.Supply = fleet.KnownAt(total, now)
		d := Divide(in)
		for _, s := range d.Short {
			t.Errorf("case %d: %s is short of %s (%d bytes): %s", k, s.Tenant, s.By, s.By.Memory, s.Why)
		}
	}
}
