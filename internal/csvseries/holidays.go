package csvseries

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/plain"
)

// Holidays reads a list of holidays: CSV with the header date,name or date,name,zone, or YAML with a list of those fields (by itself, or
// under `holidays`). A date is a day of the zone (UTC where none is named; an IANA name else), so that series whose times are local without
// saying so need no zone. A feast of several days has a row for each.
//
// A row may name a region in place of a date and a name, for all the days that package calendar knows of it: CSV with the header region or
// region,zone, or the field region in YAML, where both kinds of row may stand in one list.
func Holidays(file string, data []byte) ([]plain.Holiday, error) {
	rows, err := holidayRows(file, data)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &Error{File: file, Problem: "no holidays", Fix: "write one row date,name for each day"}
	}
	var out []plain.Holiday
	seen := map[string]int{}
	for _, r := range rows {
		days, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		key := strings.Join([]string{r.region, r.date, r.name, r.zone}, "\x00")
		if first, ok := seen[key]; ok {
			what := fmt.Sprintf("%s of %s", quote(r.name), r.date)
			if r.region != "" {
				what = "region " + r.region
			}
			return nil, &Error{File: file, Line: r.line, Problem: fmt.Sprintf("%s stands on line %d already", what, first),
				Fix: "keep one row for each day, and one for each region"}
		}
		seen[key] = r.line
		out = append(out, days...)
	}
	slices.SortStableFunc(out, func(a, b plain.Holiday) int { return a.From.Compare(b.From) })
	return out, nil
}

// holidayRow is one day as it stands in a file.
type holidayRow struct {
	date, name, region, zone string
	line                     int
}

// The years that the days of a region are listed for. Series that lie outside of them are not those of services.
const firstYear, lastYear = 1970, 2099

func (r *holidayRow) parse(file string) ([]plain.Holiday, error) {
	fail := func(field, problem, fix string) ([]plain.Holiday, error) {
		return nil, &Error{File: file, Line: r.line, Field: field, Problem: problem, Fix: fix}
	}
	if r.region == "" && r.name == "" {
		return fail("name", "empty", "name the holiday: days of one name are occurrences of one holiday")
	}
	zone := time.UTC
	if r.zone != "" {
		var err error
		if zone, err = time.LoadLocation(r.zone); err != nil || r.zone == "Local" {
			return fail("zone", fmt.Sprintf("%s is no time zone", quote(r.zone)), "write an IANA name such as Asia/Shanghai, or leave it out for UTC")
		}
	}
	if r.region != "" {
		if r.date != "" || r.name != "" {
			return fail("region", "stands beside a date or a name", "give each row either a region, or a date and a name")
		}
		if !slices.Contains(calendar.Regions(), r.region) {
			return fail("region", fmt.Sprintf("%s is not known", quote(r.region)), "write one of "+strings.Join(calendar.Regions(), ", ")+
				", or the region's days as rows date,name")
		}
		return calendar.Days(r.region, time.Date(firstYear, 1, 1, 0, 0, 0, 0, zone), time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, zone), zone), nil
	}
	from, err := time.ParseInLocation(time.DateOnly, r.date, zone)
	if err != nil {
		return fail("date", fmt.Sprintf("%s is no date", quote(r.date)), "write year-month-day, as in 2026-02-17")
	}
	if u := from.Unix(); u <= earliest || u >= latest {
		return fail("date", fmt.Sprintf("%s lies outside of the years 1824 to 2116", quote(r.date)), "write year-month-day, as in 2026-02-17")
	}
	return []plain.Holiday{{Name: r.name, From: from, To: from.AddDate(0, 0, 1)}}, nil
}

// set fills one field; false where there is none of that name.
func (r *holidayRow) set(field, value string) bool {
	switch field {
	case "date":
		r.date = value
	case "name":
		r.name = value
	case "region":
		r.region = value
	case "zone":
		r.zone = value
	default:
		return false
	}
	return true
}

const headerFix = "begin with the header date,name or date,name,zone, or region or region,zone"

// holidayRows tells CSV from YAML by how the file begins: a header is no list.
func holidayRows(file string, data []byte) ([]holidayRow, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	first, _, _ := bytes.Cut(text, []byte("\n"))
	header, _, _ := strings.Cut(strings.ToLower(string(bytes.TrimSpace(first)))+",", ",")
	if header == "date" || header == "region" {
		return csvHolidays(file, data)
	}
	if len(text) == 0 {
		return nil, &Error{File: file, Problem: "empty", Fix: headerFix}
	}
	return yamlHolidays(file, data)
}

func csvHolidays(file string, data []byte) ([]holidayRow, error) {
	c := csv.NewReader(skipMark(bytes.NewReader(data)))
	c.FieldsPerRecord = -1
	c.TrimLeadingSpace = true
	var columns []string
	var out []holidayRow
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, (&parser{file: file}).broken(err)
		}
		line, _ := c.FieldPos(0)
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if columns == nil {
			columns = record
			for i := range columns {
				columns[i] = strings.ToLower(columns[i])
			}
			if !slices.Contains([]string{"date,name", "date,name,zone", "region", "region,zone"}, strings.Join(columns, ",")) {
				return nil, &Error{File: file, Line: line, Field: "header", Problem: fmt.Sprintf("found %s", clip(strings.Join(columns, ","))),
					Fix: headerFix}
			}
			continue
		}
		if len(record) != len(columns) {
			return nil, &Error{File: file, Line: line, Problem: fmt.Sprintf("%d fields", len(record)),
				Fix: fmt.Sprintf("write the %d fields %s", len(columns), strings.Join(columns, ","))}
		}
		row := holidayRow{line: line}
		for i, c := range columns {
			row.set(c, record[i])
		}
		out = append(out, row)
	}
}

func yamlHolidays(file string, data []byte) ([]holidayRow, error) {
	const fix = "write CSV with the header date,name or date,name,zone, or a YAML list of those fields, or of region and zone"
	fail := func(n *yaml.Node, problem string) ([]holidayRow, error) {
		return nil, &Error{File: file, Line: n.Line, Problem: problem, Fix: fix}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return nil, &Error{File: file, Problem: "neither CSV nor YAML", Fix: fix}
	}
	list := doc.Content[0]
	if list.Kind == yaml.MappingNode && len(list.Content) == 2 && list.Content[0].Value == "holidays" {
		list = list.Content[1]
	}
	if list.Kind != yaml.SequenceNode {
		return fail(list, "no list of holidays")
	}
	var out []holidayRow
	for _, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			return fail(item, "neither a date and a name nor a region")
		}
		row := holidayRow{line: item.Line}
		for i := 0; i+1 < len(item.Content); i += 2 {
			key, value := item.Content[i], item.Content[i+1]
			if value.Kind != yaml.ScalarNode {
				return fail(value, fmt.Sprintf("%s is no text", quote(key.Value)))
			}
			if !row.set(key.Value, value.Value) {
				return fail(key, fmt.Sprintf("unknown field %s", quote(key.Value)))
			}
		}
		out = append(out, row)
	}
	return out, nil
}
