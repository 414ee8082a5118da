package plain

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/springtide/springtide/series"
)

// lastWeek repeats the last week, and the same at every quantile.
func lastWeek(in Input) []Forecast {
	return Each(func(h History, in *Input) Forecast {
		f := Forecast{}
		for range in.Quantiles {
			f.Paths = append(f.Paths, slices.Clone(h.Values[h.Len()-7*24:][:in.Horizon]))
		}
		return f
	})(in)
}

// A sale trebles three of four series, lately within the very week that is repeated; the fourth is younger than the first sale and
// lacks the second, and the fifth falls below zero. Every hour of the next sale is forecast three times as high but for the fifth, and nothing else is.
func TestWithHolidays(t *testing.T) {
	start := time.Date(2025, 1, 6, 0, 0, 0, 0, time.UTC)
	const days = 126
	var in Input
	sale := map[int]bool{60: true, 121: true, 127: true}
	for n := range days + 2 {
		if sale[n] {
			in.Options.Holidays = append(in.Options.Holidays, Holiday{Name: "Sale", From: start.AddDate(0, 0, n), To: start.AddDate(0, 0, n+1)})
		}
	}
	for k := range 5 {
		h := History{ID: fmt.Sprint("s", k), Series: series.New(start, time.Hour, days*24)}
		for i := range h.Values {
			h.Values[i] = float64(100+10*k) + 20*math.Sin(2*math.Pi*float64(i%24)/24) + float64(i*7%5)
			if sale[i/24] && k < 4 {
				h.Values[i] *= 3
			}
			if k == 4 {
				h.Values[i] -= 130
			}
		}
		if k == 3 {
			h.Series = h.Since(start.AddDate(0, 0, 70))
			for i := range 24 {
				h.Values[(121-70)*24+i] = math.NaN()
			}
		}
		in.Histories = append(in.Histories, h)
	}
	in.Horizon, in.Quantiles = 72, []float64{0.5, 0.9}
	plain := lastWeek(Input{Histories: in.Histories, Horizon: in.Horizon, Quantiles: in.Quantiles})
	got := WithHolidays(lastWeek)(in)
	for k, f := range got[:4] {
		for j, y := range f.Paths[0] {
			want := plain[k].Paths[0][j]
			if n := days - 7 + j/24; sale[n] {
				want /= 3 // the sale of the week before is no ordinary day
			}
			if sale[days+j/24] {
				want *= 3
			}
			if k == 3 && math.IsNaN(want) {
				continue // what is repeated is the day that is missing
			}
			if !(math.Abs(y/want-1) <= 0.15) {
				t.Fatalf("series %d, hour %d: %.1f, want about %.1f", k, j, y, want)
			}
		}
		if last := f.Paths; !(last[1][30] >= last[0][30]) {
			t.Errorf("series %d: %v above %v", k, last[0][30], last[1][30])
		}
	}
	if d := cmp.Diff(plain[4], got[4], cmpopts.EquateNaNs()); d != "" {
		t.Errorf("a series below zero: %s", d)
	}
	in.Options.Holidays = nil
	if d := cmp.Diff(plain, WithHolidays(lastWeek)(in), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("without holidays: %s", d)
	}
}
