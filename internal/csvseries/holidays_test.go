package csvseries

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/plain"
)

func TestHolidays(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	day := func(name string, d int, zone *time.Location) plain.Holiday {
		return plain.Holiday{Name: name, From: time.Date(2026, 2, d, 0, 0, 0, 0, zone), To: time.Date(2026, 2, d+1, 0, 0, 0, 0, zone)}
	}
	want := []plain.Holiday{day("Spring Festival", 17, shanghai), day("Spring Festival", 18, shanghai), day("Presidents' Day, Monday", 23, time.UTC)}
	for name, in := range map[string]string{
		"CSV": "\ufeffDate, Name ,zone\n2026-02-23,\"Presidents' Day, Monday\",\n2026-02-17,Spring Festival,Asia/Shanghai\n\n2026-02-18,Spring Festival,Asia/Shanghai\n",
		"YAML list": "# ours\n- {date: 2026-02-17, name: Spring Festival, zone: Asia/Shanghai}\n- {date: \"2026-02-18\", name: Spring Festival, zone: Asia/Shanghai}\n" +
			"- date: 2026-02-23\n  name: \"Presidents' Day, Monday\"\n",
		"YAML": "holidays:\n- {date: 2026-02-17, name: Spring Festival, zone: Asia/Shanghai}\n- {name: \"Presidents' Day, Monday\", date: 2026-02-23}\n" +
			"- {date: 2026-02-18, name: Spring Festival, zone: Asia/Shanghai}\n",
	} {
		got, err := Holidays("h", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A region stands for all of its days, at midnights of the zone that its row names.
func TestRegions(t *testing.T) {
	for name, in := range map[string]string{
		"CSV":  "region,zone\nCN,Asia/Shanghai\n",
		"YAML": "- {region: CN, zone: Asia/Shanghai}\n- {date: 2026-03-08, name: Founders' Day}\n",
	} {
		got, err := Holidays("h", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is := func(name, at string) func(plain.Holiday) bool {
			return func(d plain.Holiday) bool { return d.Name == name && d.From.Format(time.RFC3339) == at }
		}
		if !slices.ContainsFunc(got, is("Spring Festival", "2026-02-17T00:00:00+08:00")) {
			t.Errorf("%s: no Spring Festival of 2026", name)
		}
		if name == "YAML" && !slices.ContainsFunc(got, is("Founders' Day", "2026-03-08T00:00:00Z")) {
			t.Error("the day beside the region is missing")
		}
	}
}

func TestBadHolidays(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", " \n", "h: empty: begin with the header date,name or date,name,zone, or region or region,zone"},
		{"header alone", "date,name\n", "h: no holidays: write one row date,name for each day"},
		{"another header", "date,holiday\n2026-01-01,New Year\n", "h:1: header: found date,holiday: begin with the header date,name or date,name,zone, or region or region,zone"},
		{"fields", "date,name\n2026-01-01\n", "h:2: 1 fields: write the 2 fields date,name"},
		{"no name", "date,name\n2026-01-01,\n", "h:2: name: empty: name the holiday: days of one name are occurrences of one holiday"},
		{"no date", "date,name\n1.1.2026,New Year\n", `h:2: date: "1.1.2026" is no date: write year-month-day, as in 2026-02-17`},
		{"the 30th of February", "date,name\n2026-02-30,x\n", `h:2: date: "2026-02-30" is no date: write year-month-day, as in 2026-02-17`},
		{"year 9999", "date,name\n9999-01-01,x\n", `h:2: date: "9999-01-01" lies outside of the years 1824 to 2116: write year-month-day, as in 2026-02-17`},
		{"zone", "date,name,zone\n2026-01-01,x,Peking\n", `h:2: zone: "Peking" is no time zone: write an IANA name such as Asia/Shanghai, or leave it out for UTC`},
		{"twice", "date,name\n2026-01-01,x\n2026-01-02,x\n2026-01-01,x\n", `h:4: "x" of 2026-01-01 stands on line 2 already: keep one row for each day, and one for each region`},
		{"a quote", "date,name\n2026-01-01,a\"b\n", `h:2: bare " in non-quoted-field: put a field that holds quotes or commas into double quotes, and double its quotes`},
		{"no header", "2026-01-01,New Year\n", "h:1: no list of holidays: write CSV with the header date,name or date,name,zone, or a YAML list of those fields, or of region and zone"},
		{"another field", "- date: 2026-01-01\n  day: x\n", `h:2: unknown field "day": write CSV with the header date,name or date,name,zone, or a YAML list of those fields, or of region and zone`},
		{"list of texts", "- 2026-01-01\n", "h:1: neither a date and a name nor a region: write CSV with the header date,name or date,name,zone, or a YAML list of those fields, or of region and zone"},
		{"a region that is not known", "region\nXX\n", `h:2: region: "XX" is not known: write one of ` + strings.Join(calendar.Regions(), ", ") + ", or the region's days as rows date,name"},
		{"a region twice", "region,zone\nCN,UTC\nCN,UTC\n", "h:3: region CN stands on line 2 already: keep one row for each day, and one for each region"},
		{"a region and a date", "- {region: CN, date: 2026-01-01}\n", "h:1: region: stands beside a date or a name: give each row either a region, or a date and a name"},
		{"neither", "a: [", "h: neither CSV nor YAML: write CSV with the header date,name or date,name,zone, or a YAML list of those fields, or of region and zone"},
	}
	for _, tt := range tests {
		_, err := Holidays("h", []byte(tt.in))
		var bad *Error
		if !errors.As(err, &bad) || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// Whatever a file holds, it is read as days of a name or refused by an Error.
func FuzzHolidays(f *testing.F) {
	f.Add([]byte("date,name,zone\n2026-02-17,Spring Festival,Asia/Shanghai\n"))
	f.Add([]byte("- {date: 2026-02-17, name: Spring Festival}\n"))
	f.Add([]byte("holidays:\n- {date: 2026-02-17, name: x, zone: UTC}\n"))
	f.Add([]byte("region,zone\nCN,Asia/Shanghai\n"))
	f.Add([]byte("date,name\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Holidays("h", data)
		var bad *Error
		if err != nil {
			if !errors.As(err, &bad) || bad.Fix == "" {
				t.Fatalf("%q: %v says no fix", data, err)
			}
			return
		}
		for i, h := range got {
			if h.Name == "" || !h.From.Before(h.To) || h.To.Sub(h.From) > 25*time.Hour || i > 0 && h.From.Before(got[i-1].From) {
				t.Fatalf("%q: %+v", data, got)
			}
		}
	})
}
