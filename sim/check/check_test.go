package check

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow faster: a search keeps nearly all that it makes.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// scopes are the searches of a test, each within seconds. Together they reach what one search within the bounds of all would take hours for.
var scopes = []Options{
	{Shape: Machines, Faults: 1},
	{Shape: Sockets, Turns: 2},
	{Shape: Sockets, Turns: 1, Freezes: 1},
	{Shape: Sockets, Turns: 1, Gang: true},
	{Shape: Machines, Turns: 1, Borrow: true},
	{Shape: Sockets, Turns: 1, Pauses: 1},
	{Shape: Machines, Faults: 1, NoAgents: true},
	{Shape: Machines, Faults: 1, NoAgents: true, Bundled: true, Only: []kind{bindsLate, falls, judgesLate}},
	{Shape: Machines, Turns: 1, Faults: 1, NoAgents: true, Bundled: true, Only: []kind{dies, fails}, Most: 200_000},
	{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{erases}},
	{Shape: Sockets, Turns: 1, Faults: 1, Only: []kind{crashes, fails, dies, answersLate, reportsLate, bindsLate}},
}

// quick is how many of them do under the race detector, which has little to watch: a search is one goroutine.
const quick = 4

// full are the scopes of `make bench-shift`. Those with an end are cut off there.
var full = []Options{
	{Shape: Machines, Turns: 1},
	{Shape: Sockets, Turns: 2, Pauses: 1},
	{Shape: Sockets, Turns: 1, Faults: 1},
	{Shape: Sockets, Turns: 1, Faults: 1, Skew: true},
	{Shape: Sockets, Turns: 1, Faults: 1, Pauses: 1, Most: 2_000_000},
	{Shape: Sockets, Turns: 1, Freezes: 1, Faults: 1, Only: crash.Only},
	{Shape: Sockets, Turns: 1, Freezes: 1, Faults: 1, Most: 1_000_000},
	{Shape: Sockets, Turns: 1, Faults: 1, Gang: true, Most: 1_000_000},
	{Shape: Machines, Turns: 2, Borrow: true},
	{Shape: Machines, Turns: 1, Faults: 1, Borrow: true, Most: 1_000_000},
	{Shape: Machines, Turns: 1, Faults: 1, Only: []kind{bindsLate}},
	{Shape: Machines, Turns: 1, Faults: 1, NoAgents: true, Most: 1_000_000},
	{Shape: Machines, Faults: 2, NoAgents: true, Bundled: true, Only: []kind{bindsLate, falls, judgesLate, lags, usurps}, Most: 1_000_000},
	{Shape: Machines, Turns: 1, Faults: 1, NoAgents: true, Bundled: true, Most: 1_000_000},
	{Shape: Machines, Turns: 1, Faults: 1, Borrow: true, Only: []kind{erases}},
	{Shape: Machines, Faults: 2, Only: []kind{erases, usurps, crashes, fails, lags}, Most: 1_000_000},
	{Shape: Machines, Faults: 2, NoAgents: true, Only: []kind{erases, usurps, crashes}, Most: 1_000_000},
	{Shape: Machines, Faults: 2, NoAgents: true, Only: []kind{lags, usurps, bindsLate, judgesLate}, Most: 1_000_000},
}

// TestProtocol searches every state within the bounds. FULL=1 takes wider ones.
func TestProtocol(t *testing.T) {
	todo := scopes
	switch {
	case raceEnabled:
		todo = scopes[:quick]
	case os.Getenv("FULL") != "":
		todo = full
	}
	for _, o := range todo {
		t.Run(o.String(), func(t *testing.T) {
			r := Run(o)
			t.Log(r.Line())
			if r.Broken != "" {
				t.Error(r.Explain())
			}
			if !r.Complete && o.Most == 0 {
				t.Error("the search was not finished")
			}
		})
	}
}
