package calendar

import (
	"slices"
	"time"

	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/at"
	"github.com/rickar/cal/v2/be"
	"github.com/rickar/cal/v2/br"
	"github.com/rickar/cal/v2/ca"
	"github.com/rickar/cal/v2/ch"
	"github.com/rickar/cal/v2/cz"
	"github.com/rickar/cal/v2/de"
	"github.com/rickar/cal/v2/dk"
	"github.com/rickar/cal/v2/es"
	"github.com/rickar/cal/v2/fr"
	"github.com/rickar/cal/v2/gb"
	"github.com/rickar/cal/v2/ie"
	"github.com/rickar/cal/v2/it"
	"github.com/rickar/cal/v2/jp"
	"github.com/rickar/cal/v2/nl"
	"github.com/rickar/cal/v2/no"
	"github.com/rickar/cal/v2/nz"
	"github.com/rickar/cal/v2/pl"
	"github.com/rickar/cal/v2/se"
	"github.com/rickar/cal/v2/us"
	"github.com/rickar/cal/v2/za"
)

// The library computes dates at midnight of this location, and there are zones without a midnight on some dates: a date
// must not depend on where the process runs.
func init() { cal.DefaultLoc = time.UTC }

// nation is a country whose days follow rules of the solar year. Its holidays are the national ones; days of provinces are left to the
// operator's own list.
type nation struct {
	code     string
	holidays []*cal.Holiday
	// sales says that the sales after Thanksgiving are held there.
	sales bool
}

var fixed = []nation{
	{"AT", at.Holidays, true},
	{"BE", be.Holidays, true},
	{"BR", br.Holidays, true},
	{"CA", ca.Holidays, true},
	{"CH", ch.Holidays, true},
	{"CZ", cz.Holidays, true},
	{"DE", de.Holidays, true},
	{"DK", dk.Holidays, true},
	{"ES", es.Holidays, true},
	{"FR", fr.Holidays, true},
	{"GB", gb.Holidays, true},
	{"IE", ie.Holidays, true},
	{"IT", it.Holidays, true},
	{"JP", jp.Holidays, false},
	{"NL", nl.Holidays, true},
	{"NO", no.Holidays, true},
	{"NZ", nz.Holidays, true},
	{"PL", pl.Holidays, true},
	{"SE", se.Holidays, true},
	{"US", us.Holidays, true},
	{"ZA", za.Holidays, true},
}

// minor are the federal holidays of the United States that most private employers work through (the yearly holiday surveys of the Society
// for Human Resource Management find them closed at less than half). Elsewhere national holidays are days off.
var minor = []*cal.Holiday{us.MlkDay, us.PresidentsDay, us.Juneteenth, us.ColumbusDay, us.VeteransDay}

func (n *nation) days(year int, zone *time.Location) []Day {
	var out []Day
	taken := map[time.Time]bool{}
	for _, h := range n.holidays {
		actual, observed := h.Calc(year)
		if actual.IsZero() {
			continue
		}
		kind := Holiday
		if slices.Contains(minor, h) {
			kind = Minor
		}
		y, m, d := actual.Date()
		out = append(out, on(h.Name, kind, 0, y, m, d, zone))
		taken[out[len(out)-1].From] = true
		if oy, om, od := observed.Date(); !observed.IsZero() && (oy != y || om != m || od != d) {
			// The day off moved: shops and offices may differ, so both are named.
			out = append(out, on(h.Name+" (observed)", kind, 0, oy, om, od, zone))
		}
	}
	for _, f := range []Day{on("Christmas Eve", Feast, 0, year, time.December, 24, zone), on("New Year's Eve", Feast, 0, year, time.December, 31, zone)} {
		if !taken[f.From] {
			out = append(out, f)
		}
	}
	if n.sales {
		thanks, _ := us.ThanksgivingDay.Calc(year)
		_, m, d := thanks.Date()
		out = append(out, on("Black Friday", Sale, 0, year, m, d+1, zone), on("Cyber Monday", Sale, 0, year, m, d+4, zone))
	}
	return out
}
