package view

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/world"
)

var start = time.Date(2026, 6, 4, 0, 30, 0, 0, time.UTC)

// at is the world a while after the account began.
func at(d time.Duration) *world.View {
	v := &world.View{
		Start: start, End: start.Add(24 * time.Hour), At: start.Add(d), WallPerDay: 301 * time.Second,
		Nodes: 200, Services: 40, Allocatable: 12800, OnlineHome: 10240, Static: 9216,
		Demand: 1234, Forecast: math.NaN(), Ready: 2345, OnlineRequested: 2400, OfflineRequested: 7000, Used: 8000, Lent: 5000,
		Replicas: 350, ReadyReplicas: 348, Waiting: 2, OfflinePods: 600, Loans: make([]int, len(fleet.Phases())),
		NodesLent: 77, SocketsLent: 3, Violating: 1, ViolationMinutes: 12, ViolationMinutesStatic: 4, Utilisation: 0.625, UtilisationStatic: 0.31,
	}
	v.Loans[0], v.Loans[1] = 4, 80
	v.Jobs = []world.JobView{{Name: "train", Share: 0.633}, {Name: "spark", Share: 1, Done: true}}
	return v
}

// plain takes the colours off.
func plain(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		for l != "" {
			if i := strings.IndexByte(l, '\x1b'); i >= 0 {
				b.WriteString(l[:i])
				_, l, _ = strings.Cut(l[i:], "m")
				continue
			}
			b.WriteString(l)
			l = ""
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPicture(t *testing.T) {
	s := &Screen{width: func() int { return 120 }}
	v := at(6 * time.Hour)
	s.trails.add(at(0))
	s.trails.add(v)
	got := plain(s.picture(v))
	for _, want := range []string{
		"Thu 4 Jun 06:30", "25 %", "5m1s", "1,234 cores", "nothing yet", "2,345 cores static 9,216", "348 of 350 replicas ready, 2 wait for room",
		"5,000 cores in 77 machines, 3 sockets", "7,000 cores in 600 pods", "Emptying 4 · Lent 80", "train 63 % · spark finished",
		"1 of 40 services now, 12 minutes static 4", "8,000 of 12,800 cores, mean 62.5 % static 31.0 %",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q:\n%s", want, got)
		}
	}
	for _, l := range s.picture(v) {
		if w := lipgloss.Width(l); w > 120 {
			t.Errorf("a line is %d wide on a terminal of 120: %q", w, l)
		}
	}
	v.Forecast, v.Down, v.At = 4321, []world.Target{world.Prometheus}, start.Add(-time.Minute)
	got = plain(s.picture(v))
	for _, want := range []string{"4,321 cores in an hour", "down on purpose: [prometheus]", "warming up"} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q:\n%s", want, got)
		}
	}
}

// TestNarrow compares the picture on 100 columns with one that has room: nothing is cut off.
func TestNarrow(t *testing.T) {
	v := at(6 * time.Hour)
	v.Forecast = 12345
	for i := range v.Loans {
		v.Loans[i] = 2 + i
	}
	v.Violating, v.ViolationMinutes, v.ViolationMinutesStatic = 10, 1234, 1234
	picture := func(width int) []string {
		s := &Screen{width: func() int { return width }, Hints: []string{"export KUBECONFIG=/tmp/springtide-lab-1234567890/springtide-plane-1234567890/admin.kubeconfig"}}
		s.trails.add(v)
		return strings.Split(plain(s.picture(v)), "\n")
	}
	narrow, wide := picture(100), picture(300)
	for i := range wide {
		// The last words of a line go first.
		words := strings.Fields(wide[i])
		if len(words) > 0 && !strings.HasSuffix(strings.TrimSpace(narrow[i]), words[len(words)-1]) {
			t.Errorf("on 100 columns %q has lost its end, which is %q", narrow[i], words[len(words)-1])
		}
	}
}

// TestHintsAreWhole: what is there to be copied is not cut, however narrow the terminal or long the path.
func TestHintsAreWhole(t *testing.T) {
	for _, hint := range []string{"export KUBECONFIG=/tmp/springtide-lab", "bin/springtide services -A",
		"export KUBECONFIG=/var/folders/xx/yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy/T/springtide-lab-1234567890/springtide-plane-1234567890/pki/admin.kubeconfig"} {
		for _, width := range []int{30, 80, 100} {
			s := &Screen{width: func() int { return width }, Hints: []string{hint}}
			s.trails.add(at(0))
			if got := plain(s.picture(at(time.Hour))); !strings.Contains(got, hint) {
				t.Errorf("on %d columns %q is cut:\n%s", width, hint, got)
			}
		}
	}
}

// TestIdle: lent machines without work are explained.
func TestIdle(t *testing.T) {
	v := at(6 * time.Hour)
	v.Jobs[0].Done = true
	if got := plain([]string{jobsText(v)}); !strings.Contains(got, "train finished · spark finished: no work is left") {
		t.Errorf("got %q", got)
	}
}

// TestSVG: the drawn terminal says what the picture says, in its colours, and is well formed.
func TestSVG(t *testing.T) {
	s := &Screen{width: func() int { return 40 }}
	v := at(6 * time.Hour)
	s.trails.add(v)
	got := s.SVG(v)
	var text strings.Builder
	for dec := xml.NewDecoder(bytes.NewReader(got)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			text.Write(c)
		}
	}
	for _, want := range []string{"5,000 cores in 77 machines", "train 63 % · spark finished", "Emptying 4 · Lent 80"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the drawing lacks %q", want)
		}
	}
	for _, c := range []string{"#00afff", "#ffaf00", "#8a8a8a"} {
		if !bytes.Contains(got, []byte(c)) {
			t.Errorf("the drawing lacks the colour %s", c)
		}
	}
}

// A curve fills the day from left to right: what has not been yet is empty.
func TestTrails(t *testing.T) {
	var tr trails
	tr.add(at(0))
	tr.add(at(12 * time.Hour))
	tr.add(at(25 * time.Hour)) // beyond the end: ignored
	if n := len(tr.demand); n != 289 {
		t.Fatalf("%d points, want one for each five minutes of a day, and the end", n)
	}
	for i, v := range tr.demand {
		if known := i == 0 || i == 144; known == math.IsNaN(v) {
			t.Errorf("point %d is %v", i, v)
		}
	}
}

// On a file there are lines, one for each virtual hour, and nothing that a terminal would have to interpret.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := New(f, false)
	s.Progress("starting etcd")
	for m := range 121 {
		if v := at(time.Duration(m) * time.Minute); s.Due(v.At) {
			s.Show(v)
		}
	}
	s.Close()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	if strings.Count(got, "\n") != 4 || !strings.Contains(got, "starting etcd") || !strings.Contains(got, "Thu 02:30") {
		t.Errorf("want the progress and the hours 00:30, 01:30 and 02:30:\n%s", got)
	}
	if strings.ContainsRune(got, '\x1b') {
		t.Errorf("control characters in a file: %q", got)
	}
}

func TestCount(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := count(v); got != want {
			t.Errorf("count(%v) = %q, want %q", v, got, want)
		}
	}
}
