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

	"github.com/springtide/springtide/forecast/plain"
)

// Holidays reads a list of holidays: CSV with the header date,name or date,name,zone, or YAML with a list of those fields (by itself, or
// under `holidays`). A date is a day of the zone (UTC where none is named; an IANA name else), so that series whose times are local without
// saying so need no zone. A feast of several days has a row for each.
func Holidays(file string, data []byte) ([]plain.Holiday, error) {
	rows, err := holidayRows(file, data)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &Error{File: file, Problem: "no holidays", Mend: "write one row date,name for each day"}
	}
	var out []plain.Holiday
	seen := map[string]int{}
	for _, r := range rows {
		h, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		key := r.date + "\x00" + h.Name + "\x00" + r.zone
		if first, ok := seen[key]; ok {
			return nil, &Error{File: file, Line: r.line, Problem: fmt.Sprintf("%s of %s stands on line %d already", quote(h.Name), r.date, first),
				Mend: "keep one row for each day"}
		}
		seen[key] = r.line
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b plain.Holiday) int { return a.From.Compare(b.From) })
	return out, nil
}

// holidayRow is one day as it stands in a file.
type holidayRow struct {
	date, name, zone string
	line             int
}

func (r *holidayRow) parse(file string) (plain.Holiday, error) {
	fail := func(field, problem, mend string) (plain.Holiday, error) {
		return plain.Holiday{}, &Error{File: file, Line: r.line, Field: field, Problem: problem, Mend: mend}
	}
	if r.name == "" {
		return fail("name", "empty", "name the holiday: days of one name are occurrences of one holiday")
	}
	zone := time.UTC
	if r.zone != "" {
		var err error
		if zone, err = time.LoadLocation(r.zone); err != nil || r.zone == "Local" {
			return fail("zone", fmt.Sprintf("%s is no time zone", quote(r.zone)), "write an IANA name such as Asia/Shanghai, or leave it out for UTC")
		}
	}
	from, err := time.ParseInLocation(time.DateOnly, r.date, zone)
	if err != nil {
		return fail("date", fmt.Sprintf("%s is no date", quote(r.date)), "write year-month-day, as in 2026-02-17")
	}
	if u := from.Unix(); u <= earliest || u >= latest {
		return fail("date", fmt.Sprintf("%s lies outside of the years 1824 to 2116", quote(r.date)), "write year-month-day, as in 2026-02-17")
	}
	return plain.Holiday{Name: r.name, From: from, To: from.AddDate(0, 0, 1)}, nil
}

// holidayRows tells CSV from YAML by how the file begins: a header is no list.
func holidayRows(file string, data []byte) ([]holidayRow, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if first, _, _ := bytes.Cut(text, []byte("\n")); strings.HasPrefix(strings.ToLower(string(bytes.TrimSpace(first))), "date,") {
		return csvHolidays(file, data)
	}
	if len(text) == 0 {
		return nil, &Error{File: file, Problem: "empty", Mend: "begin with the header date,name or date,name,zone"}
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
			if !slices.Equal(columns, []string{"date", "name"}) && !slices.Equal(columns, []string{"date", "name", "zone"}) {
				return nil, &Error{File: file, Line: line, Field: "header", Problem: fmt.Sprintf("found %s", clip(strings.Join(columns, ","))),
					Mend: "begin with the header date,name or date,name,zone"}
			}
			continue
		}
		if len(record) != len(columns) {
			return nil, &Error{File: file, Line: line, Problem: fmt.Sprintf("%d fields", len(record)),
				Mend: fmt.Sprintf("write the %d fields %s", len(columns), strings.Join(columns, ","))}
		}
		row := holidayRow{date: record[0], name: record[1], line: line}
		if len(columns) == 3 {
			row.zone = record[2]
		}
		out = append(out, row)
	}
}

func yamlHolidays(file string, data []byte) ([]holidayRow, error) {
	const mend = "write CSV with the header date,name or date,name,zone, or a YAML list of those fields"
	fail := func(n *yaml.Node, problem string) ([]holidayRow, error) {
		return nil, &Error{File: file, Line: n.Line, Problem: problem, Mend: mend}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return nil, &Error{File: file, Problem: "neither CSV nor YAML", Mend: mend}
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
			return fail(item, "no holiday with a date and a name")
		}
		row := holidayRow{line: item.Line}
		for i := 0; i+1 < len(item.Content); i += 2 {
			key, value := item.Content[i], item.Content[i+1]
			if value.Kind != yaml.ScalarNode {
				return fail(value, fmt.Sprintf("%s is no text", quote(key.Value)))
			}
			switch key.Value {
			case "date":
				row.date = value.Value
			case "name":
				row.name = value.Value
			case "zone":
				row.zone = value.Value
			default:
				return fail(key, fmt.Sprintf("unknown field %s", quote(key.Value)))
			}
		}
		out = append(out, row)
	}
	return out, nil
}
