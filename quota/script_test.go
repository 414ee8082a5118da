package quota

import (
	"fmt"
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestScripts divides the cores of a tree:
//
//	supply CORES
//	tenant ID PARENT|- GUARANTEE [lends CORES] [borrows CORES]
//	want ID NOW [AHEAD...]         now, and in the steps from now on
func TestScripts(t *testing.T) { scripttest.Run(t, play) }

func play(t *testing.T, lines [][]string) string {
	t.Helper()
	num := func(word string) int64 { return int64(scripttest.Int(t, word)) }
	var tree []fleet.Tenant
	var wants []Want
	var supply fleet.Resources
	for _, f := range lines {
		switch f[0] {
		case "supply":
			supply = cores(num(f[1]))
		case "tenant":
			x := tenant(f[1], strings.Trim(f[2], "-"), num(f[3]))
			for i := 4; i+1 < len(f); i += 2 {
				switch f[i] {
				case "lends":
					x.LendingLimit = limit(num(f[i+1]))
				case "borrows":
					x.BorrowingLimit = limit(num(f[i+1]))
				default:
					t.Fatalf("unknown word %q", f[i])
				}
			}
			tree = append(tree, x)
		case "want":
			w := Want{Tenant: fleet.TenantID(f[1]), Now: cores(num(f[2]))}
			for _, word := range f[3:] {
				w.Ahead = append(w.Ahead, cores(num(word)))
			}
			wants = append(wants, w)
		default:
			t.Fatalf("unknown word %q", f[0])
		}
	}
	d := Divide(tree, wants, supply, now, nil)
	var b strings.Builder
	for _, s := range d.Shares {
		fmt.Fprintf(&b, "%s: entitled %v, borrowed %v, lent %v, limit %v cores", s.Tenant, s.Entitled.CPU.Cores(), s.Borrowed.CPU.Cores(), s.Lent.CPU.Cores(), s.Limit.CPU.Cores())
		if s.Why != "" {
			fmt.Fprintf(&b, "; %s", s.Why)
		}
		b.WriteByte('\n')
	}
	for _, s := range d.Short {
		fmt.Fprintf(&b, "%s: short of %v cores in %v; %s\n", s.Tenant, s.By.CPU.Cores(), s.From.Sub(now), s.Why)
	}
	return b.String()
}
