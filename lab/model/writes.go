package model

import (
	"maps"
	"strings"
	"time"
)

// APIWriteReport counts requests to the API server that change an object.
type APIWriteReport struct {
	Total   int     `json:"total"`
	PerHour float64 `json:"perHour"`
	// PerLoanHour are the writes to loans, node shares and nodes for each hour that a loan existed; null without loans.
	PerLoanHour *float64 `json:"perLoanHour"`
	// ByResource counts by resource and subresource, as "loans/status".
	ByResource map[string]int `json:"byResource"`
	// QuietestHour are the 60 minutes with the fewest writes, of those that begin every five minutes; null in a run that holds none.
	QuietestHour *WriteHour `json:"quietestHour"`
}

// WriteHour are 60 minutes of writes.
type WriteHour struct {
	From time.Time `json:"from"`
	// Loans is the mean number of loans. PerLoan are the writes to loans, node shares and nodes for each of them, null without loans; Others are all
	// other writes.
	Loans      float64        `json:"loans"`
	PerLoan    *float64       `json:"perLoan"`
	Others     int            `json:"others"`
	ByResource map[string]int `json:"byResource"`
}

// writeMark is what was written up to a time.
type writeMark struct {
	at       time.Time
	writes   map[string]int
	loanTime time.Duration
}

// Wrote counts writes of a controller to a resource. Leases and Events are not counted.
func (t *Truth) Wrote(resource string, n int) {
	switch kind, _, _ := strings.Cut(resource, "/"); kind {
	case "leases", "events":
		return
	}
	if t.writes == nil {
		t.writes = map[string]int{}
	}
	t.writes[resource] += n
}

// writeMarks is how far apart marks are: an hour may begin at each.
const writeMarks = 5 * time.Minute

// markWrites notes what was written up to a time.
func (t *Truth) markWrites(at time.Time) {
	if at.Truncate(writeMarks).Equal(at) {
		t.marks = append(t.marks, writeMark{at, maps.Clone(t.writes), t.loanTime})
	}
}

// sortWrites counts by what writes are for.
func sortWrites(byResource map[string]int) (loans, others int) {
	for resource, n := range byResource {
		switch kind, _, _ := strings.Cut(resource, "/"); kind {
		case "loans", "nodeshares", "nodes":
			loans += n
		default:
			others += n
		}
	}
	return loans, others
}

// perLoan divides writes by the time of loans; nil without any.
func perLoan(n int, loans time.Duration) *float64 {
	if loans <= 0 {
		return nil
	}
	each := float64(n) / loans.Hours()
	return &each
}

func (t *Truth) reportWrites(span time.Duration) APIWriteReport {
	out := APIWriteReport{ByResource: maps.Clone(t.writes), QuietestHour: t.quietestHour()}
	if out.ByResource == nil {
		out.ByResource = map[string]int{}
	}
	loans, others := sortWrites(t.writes)
	out.Total, out.PerLoanHour = loans+others, perLoan(loans, t.loanTime)
	if span > 0 {
		out.PerHour = float64(out.Total) / span.Hours()
	}
	return out
}

func (t *Truth) quietestHour() *WriteHour {
	var least *WriteHour
	fewest := 0
	const span = int(time.Hour / writeMarks)
	for i := span; i < len(t.marks); i++ {
		from, to := &t.marks[i-span], &t.marks[i]
		if to.at.Sub(from.at) != time.Hour {
			continue // a mark is missing
		}
		h := WriteHour{From: from.at, Loans: (to.loanTime - from.loanTime).Hours(), ByResource: map[string]int{}}
		for resource, n := range to.writes {
			if n -= from.writes[resource]; n > 0 {
				h.ByResource[resource] = n
			}
		}
		loans, others := sortWrites(h.ByResource)
		h.Others, h.PerLoan = others, perLoan(loans, to.loanTime-from.loanTime)
		if least == nil || loans+others < fewest {
			least, fewest = &h, loans+others
		}
	}
	return least
}
