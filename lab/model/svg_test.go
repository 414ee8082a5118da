package model

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// The picture is well-formed XML, an empty run included, and holds one point a moment in each line.
func TestSVG(t *testing.T) {
	full := Report{VirtualHours: 1, OnlineCoreHours: 50, OnlineCoreHoursStatic: 100}
	for i := range 12 {
		full.Timeline = append(full.Timeline, MomentReport{At: time.Date(2026, 6, 4, 0, 5*i, 0, 0, time.UTC), Demand: 10, Ready: 20, Lent: float64(i), Used: 15})
	}
	for name, r := range map[string]Report{"full": full, "empty": {}} {
		svg := string(r.SVG())
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: a number that is none:\n%s", name, svg)
		}
		for _, line := range strings.Split(svg, "\n") {
			if strings.HasPrefix(line, "<polyline") && strings.Count(line, ",") != len(r.Timeline) {
				t.Errorf("%s: a line of %d points for %d moments", name, strings.Count(line, ","), len(r.Timeline))
			}
		}
	}
}
