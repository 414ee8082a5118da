package plain

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSeasons(t *testing.T) {
	tests := []struct {
		text string
		want Season
		in5m int
	}{
		{"24h", Season{Length: 24 * time.Hour}, 288},
		{"7d", Season{Length: 7 * 24 * time.Hour}, 2016},
		{" 1w ", Season{Length: 7 * 24 * time.Hour}, 2016},
		{"288", Season{Steps: 288}, 288},
		{"7m", Season{Length: 7 * time.Minute}, 0}, // one step and a bit
	}
	for _, tt := range tests {
		got, err := ParseSeason(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
		if n := got.In(5 * time.Minute); n != tt.in5m {
			t.Errorf("%q has %d steps of five minutes, want %d", tt.text, n, tt.in5m)
		}
		if again, err := ParseSeason(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q reads as %+v, %v", tt.text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"":     "is no season: write a length of time",
		"day":  "is no season",
		"-24h": "is no season",
		"0d":   "is no season",
		"1":    "a season has from 2 to 105120 steps",
		"1e3h": "is no season",
	} {
		if _, err := ParseSeason(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestPeriods(t *testing.T) {
	tests := []struct {
		o    Options
		step time.Duration
		want []int
	}{
		{Options{}, time.Hour, []int{24, 168}},
		{Options{}, 24 * time.Hour, []int{7}},
		{Options{}, 30 * 24 * time.Hour, nil},
		{Options{Seasons: []Season{{Length: 7 * 24 * time.Hour}, {Steps: 24}, {Length: 24 * time.Hour}}}, time.Hour, []int{24, 168}},
	}
	for _, tt := range tests {
		if got := tt.o.Periods(tt.step); !slices.Equal(got, tt.want) {
			t.Errorf("%+v at %v: %v, want %v", tt.o, tt.step, got, tt.want)
		}
	}
}
