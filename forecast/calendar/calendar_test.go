package calendar

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func find(days []Day, name string, offset int) string {
	for _, d := range days {
		if d.Name == name && d.Offset == offset {
			return d.From.Format(time.DateOnly)
		}
	}
	return "none"
}

// Dates as published: of China by the Hong Kong Observatory's conversion tables and the notices of the State Council's General Office (days
// off), of the United States by the Office of Personnel Management, of the United Kingdom by gov.uk/bank-holidays, of Germany by the
// Federal Ministry of the Interior.
func TestPublishedDates(t *testing.T) {
	tests := []struct {
		region string
		year   int
		name   string
		offset int
		want   string
	}{
		{"CN", 2000, spring, 0, "2000-02-05"},
		{"CN", 2008, spring, 0, "2008-02-07"},
		{"CN", 2015, spring, 0, "2015-02-19"},
		{"CN", 2023, spring, 0, "2023-01-22"},
		{"CN", 2024, spring, -1, "2024-02-09"},
		{"CN", 2025, spring, -1, "2025-01-28"},
		{"CN", 2026, spring, 0, "2026-02-17"},
		{"CN", 2026, "Lantern Festival", 0, "2026-03-03"},
		{"CN", 2027, spring, 0, "2027-02-06"},
		{"CN", 2033, spring, 0, "2033-01-31"},
		{"CN", 2034, spring, 0, "2034-02-19"},
		{"CN", 2024, qingming, 0, "2024-04-04"},
		{"CN", 2023, dragon, 0, "2023-06-22"},
		{"CN", 2025, dragon, 0, "2025-05-31"},
		{"CN", 2024, midAutumn, 0, "2024-09-17"},
		{"CN", 2025, midAutumn, 0, "2025-10-06"},
		{"CN", 2026, midAutumn, 0, "2026-09-25"},
		{"CN", 2026, national, 6, "2026-10-07"},
		{"CN", 2026, "11.11", 0, "2026-11-11"},
		{"US", 2025, "Thanksgiving Day", 0, "2025-11-27"},
		{"US", 2025, "Black Friday", 0, "2025-11-28"},
		{"US", 2025, "Cyber Monday", 0, "2025-12-01"},
		{"US", 2021, "New Year's Day (observed)", 0, "2021-12-31"},
		{"US", 2026, "Independence Day (observed)", 0, "2026-07-03"},
		{"GB", 2022, "Platinum Jubilee Bank Holiday", 0, "2022-06-03"},
		{"GB", 2021, "Boxing Day (observed)", 0, "2021-12-28"},
		{"DE", 2026, "Karfreitag", 0, "2026-04-03"},
		{"DE", 2026, "Christi Himmelfahrt", 0, "2026-05-14"},
	}
	for _, tt := range tests {
		from := time.Date(tt.year, 1, 1, 0, 0, 0, 0, time.UTC)
		days := Days(tt.region, from, from.AddDate(1, 0, 0), time.UTC)
		if got := find(days, tt.name, tt.offset); got != tt.want {
			t.Errorf("%s %d: %s%+d is %s, want %s", tt.region, tt.year, tt.name, tt.offset, got, tt.want)
		}
	}
}

// The year 2026 of China as the notice of 4 November 2025 (Guobanfa Mingdian 2025 No. 7) has it.
func TestArrangementOf2026(t *testing.T) {
	z := zoneOf(t, "Asia/Shanghai")
	var off, work []string
	for _, d := range Days("CN", time.Date(2026, 1, 1, 0, 0, 0, 0, z), time.Date(2026, 6, 1, 0, 0, 0, 0, z), z) {
		switch d.Kind {
		case Holiday:
			off = append(off, fmt.Sprintf("%s %s%+d", d.From.Format("0102"), d.Name, d.Offset))
		case Work:
			work = append(work, d.From.Format("0102"))
		}
	}
	want := []string{"0101 New Year's Day+0", "0102 New Year's Day+1", "0103 New Year's Day+2"}
	for i := range 9 {
		want = append(want, fmt.Sprintf("02%d Spring Festival%+d", 15+i, i-2))
	}
	want = append(want, "0404 Qingming-1", "0405 Qingming+0", "0406 Qingming+1")
	for i := range 5 {
		want = append(want, fmt.Sprintf("050%d Labour Day%+d", 1+i, i))
	}
	if d := cmp.Diff(want, off); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"0104", "0214", "0228", "0509"}, work); d != "" {
		t.Error(d)
	}
}

// Days come in order and once, overlap what was asked for, and are the same however a stretch is asked for.
func TestDaysHoldTogether(t *testing.T) {
	zones := []*time.Location{time.UTC, zoneOf(t, "Asia/Shanghai"), zoneOf(t, "America/Sao_Paulo"), zoneOf(t, "Pacific/Auckland")}
	rapid.Check(t, func(t *rapid.T) {
		region, zone := rapid.SampledFrom(Regions()).Draw(t, "region"), rapid.SampledFrom(zones).Draw(t, "zone")
		from := time.Date(rapid.IntRange(1999, 2062).Draw(t, "year"), 1, rapid.IntRange(1, 366).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, zone)
		to := from.Add(time.Duration(rapid.IntRange(1, 24*500).Draw(t, "hours")) * time.Hour)
		mid := from.Add(to.Sub(from) / 2)
		days := Days(region, from, to, zone)
		if !slices.IsSortedFunc(days, Compare) {
			t.Fatalf("not in order: %v", days)
		}
		for i, d := range days {
			if d.Name == "" || !d.From.Before(to) || !from.Before(d.To) || d.To.Sub(d.From) < 23*time.Hour || d.To.Sub(d.From) > 25*time.Hour {
				t.Fatalf("%+v does not lie in %v .. %v", d, from, to)
			}
			if i > 0 && d == days[i-1] {
				t.Fatalf("%+v twice", d)
			}
		}
		halves := append(Days(region, from, mid, zone), Days(region, mid, to, zone)...)
		slices.SortFunc(halves, Compare)
		if d := cmp.Diff(days, slices.Compact(halves), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); d != "" {
			t.Fatal(d)
		}
	})
}

func TestEveryRegionHasDays(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range Regions() {
		off := 0
		for _, d := range Days(r, from, from.AddDate(1, 0, 0), time.UTC) {
			if d.Kind == Holiday {
				off++
			}
		}
		if off < 5 {
			t.Errorf("%s has %d holidays in 2026", r, off)
		}
	}
	if got := Days("XX", from, from.AddDate(1, 0, 0), time.UTC); len(got) != 0 {
		t.Errorf("a region that is not known has %v", got)
	}
}

func TestNumber(t *testing.T) {
	d := func(name string, day, offset int, kind Kind) Day {
		return on(name, kind, offset, 2026, 2, day, time.UTC)
	}
	got := Number([]Day{d("b", 3, 0, ""), d("a", 2, 0, ""), d("a", 1, 0, ""), d("a", 9, 0, Sale), d("a", 3, 0, ""), d("c", 4, 5, Holiday)})
	want := []Day{d("a", 1, 0, Own), d("a", 2, 1, Own), d("a", 3, 2, Own), d("b", 3, 0, Own), d("c", 4, 5, Holiday), d("a", 9, 0, Sale)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
