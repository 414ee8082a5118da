package loop

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast/festive"
)

// paydays name a day that was three days before noon.
var paydays = fleet.Calendar{Days: []fleet.NamedDay{{Name: "Payday", Month: noon.AddDate(0, 0, -3).Month(), Day: noon.AddDate(0, 0, -3).Day(), Length: 1}}}

func TestCalendarsAreDistinguished(t *testing.T) {
	moved := fleet.Calendar{Days: []fleet.NamedDay{{Name: "Payday", Month: time.May, Day: 1, Length: 1}}}
	if kinOf(&paydays) != kinOf(&moved) || datesOf(&paydays) == datesOf(&moved) {
		t.Error("a day that moved has kin as before, and other dates")
	}
	cn, us := fleet.Calendar{Regions: []string{"CN"}}, fleet.Calendar{Regions: []string{"US"}}
	if kinOf(&cn) == kinOf(&us) || kinOf(&cn) == kinOf(&paydays) {
		t.Error("services of other regions are no kin")
	}
}

// A calendar's effect is learned from a year at first, again when one of its days is over, and when two weeks have
// settled it.
func TestDaysAreDue(t *testing.T) {
	l := New(Ports{}, DefaultOptions())
	made := func(before time.Duration) Days {
		return Days{Made: noon.Add(-before), Kin: kinOf(&paydays), Dates: datesOf(&paydays)}
	}
	over := noon.Sub(noon.Truncate(day).Add(-day + lateHistory)) // since the day after payday
	tests := []struct {
		name  string
		c     fleet.Calendar
		known *Days
		want  time.Duration
	}{
		{"no calendar", fleet.Calendar{}, nil, 0},
		{"a new one", paydays, nil, daysFirst},
		{"another one", fleet.Calendar{Regions: []string{"CN"}}, ptr(made(time.Hour)), daysFirst},
		{"since its day", paydays, ptr(made(over)), 0},
		{"before its day", paydays, ptr(made(over + time.Minute)), daysAgain},
		{"two weeks ago", fleet.Calendar{Days: []fleet.NamedDay{}, Regions: []string{}}, ptr(made(daysSettled)), 0},
		{"two weeks ago, with days", paydays, ptr(made(daysSettled)), daysAgain},
	}
	for _, tt := range tests {
		svc := fleet.Service{ID: "shop/cart", Calendar: tt.c}
		delete(l.days, svc.ID)
		if tt.known != nil {
			l.days[svc.ID] = *tt.known
		}
		if got := l.dueDays(&svc, noon); got != tt.want {
			t.Errorf("%s: %v of history are due, want %v", tt.name, got, tt.want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// However many services name a calendar, a bounded stretch of history is read for it at a time, for those first that wait longest.
func TestDaysTakeTurns(t *testing.T) {
	h := &asked{err: errors.New("down")}
	l := New(Ports{History: h}, DefaultOptions())
	var services []fleet.Service
	for i := range 9 {
		id := fleet.ServiceID(fmt.Sprintf("shop/s%d", i))
		services = append(services, fleet.Service{ID: id, Calendar: paydays})
		l.days[id] = Days{Made: noon.Add(-daysSettled - time.Duration(9-i)*time.Hour), Kin: kinOf(&paydays), Dates: datesOf(&paydays),
			Effects: festive.Effects{Slots: 24}}
	}
	services = append(services, fleet.Service{ID: "shop/without"})
	l.learnDays(t.Context(), noon, services)
	if want := 6; len(h.services) != want || h.services[0] != "shop/s0" || !h.from.Equal(noon.Add(-daysAgain)) {
		t.Errorf("read for %v from %v on, want %d services", h.services, h.from, want)
	}
	if l.dueDays(&services[0], noon) == 0 {
		t.Error("a reading that failed counts as one")
	}
	h.err = nil
	l.learnDays(t.Context(), noon, services)
	l.learnDays(t.Context(), noon.Add(5*time.Minute), services)
	if !slices.Equal(h.services, []fleet.ServiceID{"shop/s6", "shop/s7", "shop/s8"}) {
		t.Errorf("the next turn is of %v", h.services)
	}
	if l.days["shop/s0"].Slots != 24 {
		t.Error("a service without samples forgot what it knew")
	}
	h.services = nil
	l.learnDays(t.Context(), noon.Add(10*time.Minute), services)
	if h.services != nil {
		t.Errorf("nothing is due, and %v were read", h.services)
	}
	services[0].Calendar = fleet.Calendar{Regions: []string{"CN"}}
	l.learnDays(t.Context(), noon.Add(10*time.Minute), services)
	if len(h.services) != 1 || !h.from.Equal(noon.Add(10*time.Minute-daysFirst)) || l.days["shop/s0"].Slots != 0 {
		t.Errorf("another calendar: read for %v from %v on, and %d slots are known", h.services, h.from, l.days["shop/s0"].Slots)
	}
}
