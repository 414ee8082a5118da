package sim

import (
	"fmt"
	"strings"
	"testing"
)

// The rows are the comparison: who drops, adds or turns one does it here, too.
const matrix = `static+none headroom 120 *
static+none headroom 100
static+none headroom 110
static+none headroom 140
static+none headroom 160
hpa+none utilisation 60 *
hpa+none utilisation 40
hpa+none utilisation 50
hpa+none utilisation 70
hpa+none utilisation 80
hpa+tdm utilisation 60 *
hpa+tidalpool utilisation 60 *
hpa+springtide utilisation 60 *
keda+none utilisation 60 *
keda+none utilisation 40
keda+none utilisation 50
keda+none utilisation 70
keda+none utilisation 80
cronhpa+none utilisation 60 *
cronhpa+none utilisation 40
cronhpa+none utilisation 50
cronhpa+none utilisation 70
cronhpa+none utilisation 80
dsp+none utilisation 60 *
dsp+none utilisation 40
dsp+none utilisation 50
dsp+none utilisation 70
dsp+none utilisation 80
phpa+none utilisation 60 *
phpa+none utilisation 40
phpa+none utilisation 50
phpa+none utilisation 70
phpa+none utilisation 80
aws+none utilisation 60 *
aws+none utilisation 40
aws+none utilisation 50
aws+none utilisation 70
aws+none utilisation 80
ahpa+none utilisation 60 *
ahpa+none utilisation 40
ahpa+none utilisation 50
ahpa+none utilisation 70
ahpa+none utilisation 80
springtide-reactive+springtide availability 95 *
springtide-reactive+none availability 95 *
springtide+springtide availability 95 *
springtide+none availability 95 *
springtide+none availability 80
springtide+none availability 90
springtide+none availability 97
springtide+none availability 99
springtide+tidalpool availability 95 *
oracle+oracle *
oracle-free+oracle *
`

// All policies are played with these lenders, at these targets; an asterisk marks what a policy comes with.
func TestTheRows(t *testing.T) {
	rows, err := Rows(tiny(1, 1, tide(1, 1)), Policies())
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&got, "%s+%s", r.Policy, r.Lender)
		if r.Knob != "" {
			fmt.Fprintf(&got, " %s %g", r.Knob, r.Target)
		}
		if r.Default {
			got.WriteString(" *")
		}
		got.WriteString("\n")
	}
	if got.String() != matrix {
		t.Errorf("got\n%swant\n%s", got.String(), matrix)
	}
}
