package csvseries

import (
	"fmt"
	"io"
	"iter"
	"slices"
)

// Shape is what a first reading found.
type Shape struct {
	// Rows and IDs count what was read.
	Rows, IDs int
	// Grouped says that the rows of each id stand together, so that one id at a time is enough to hold.
	Grouped bool
}

// Survey reads all rows and returns the first error, that of check too, which is asked about each row where it is given. It holds the ids alone.
func Survey(file string, r io.Reader, check func(Row) error) (Shape, error) {
	s := Shape{Grouped: true}
	seen := map[string]bool{}
	last, held := "", 0
	for row, err := range Rows(file, r) {
		if err == nil && check != nil {
			err = check(row)
		}
		if err != nil {
			return s, err
		}
		s.Rows++
		if s.Rows == 1 || row.ID != last {
			last, held = row.ID, 0
			if seen[row.ID] {
				s.Grouped = false
			} else if s.IDs++; s.IDs > mostIDs {
				return s, &Error{File: file, Line: row.Line, Field: "id", Problem: fmt.Sprintf("more than %d series", mostIDs), Fix: "split the file"}
			}
			seen[row.ID] = true
		}
		if held++; !s.Grouped {
			held = s.Rows
		}
		if held > mostHeld {
			return s, &Error{File: file, Line: row.Line, Problem: fmt.Sprintf("more than %d rows that must be held at once", mostHeld),
				Fix: "let the rows of each id stand together, and split longer series"}
		}
	}
	return s, nil
}

// Point is one value of a series.
type Point struct {
	// At is in nanoseconds since the epoch.
	At    int64
	Value float64
	Line  int32
}

// Group is one series: its points in time order, no two at one time.
type Group struct {
	ID     string
	Points []Point
}

// Groups yields the series in the order in which their ids first appear. Where the rows are grouped it holds one series at a time, else all
// of them, at 24 bytes a row. A time that an id has twice is an error.
func Groups(file string, r io.Reader, grouped bool) iter.Seq2[Group, error] {
	if grouped {
		return oneByOne(file, r)
	}
	return func(yield func(Group, error) bool) {
		var ids []string
		all := map[string][]Point{}
		for row, err := range Rows(file, r) {
			if err != nil {
				yield(Group{}, err)
				return
			}
			if _, ok := all[row.ID]; !ok {
				ids = append(ids, row.ID)
			}
			all[row.ID] = append(all[row.ID], point(row))
		}
		for _, id := range ids {
			g, err := group(file, id, all[id])
			delete(all, id)
			if !yield(g, err) || err != nil {
				return
			}
		}
	}
}

func oneByOne(file string, r io.Reader) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		id, points := "", []Point(nil)
		for row, err := range Rows(file, r) {
			if err != nil {
				yield(Group{}, err)
				return
			}
			if row.ID != id && len(points) > 0 {
				g, err := group(file, id, points)
				if !yield(g, err) || err != nil {
					return
				}
				points = nil
			}
			id = row.ID
			points = append(points, point(row))
		}
		if len(points) > 0 {
			yield(group(file, id, points))
		}
	}
}

func point(r Row) Point { return Point{At: r.At, Value: r.Value, Line: int32(r.Line)} }

// group brings points into time order.
func group(file, id string, points []Point) (Group, error) {
	slices.SortStableFunc(points, func(a, b Point) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	for i := 1; i < len(points); i++ {
		if points[i].At == points[i-1].At {
			problem := fmt.Sprintf("this time stands on line %d already", points[i-1].Line)
			if id != "" {
				problem = fmt.Sprintf("id %s has this time on line %d already", quote(id), points[i-1].Line)
			}
			return Group{}, &Error{File: file, Line: int(points[i].Line), Field: "ts", Problem: problem, Fix: "keep one value for each time"}
		}
	}
	return Group{ID: id, Points: points}, nil
}
