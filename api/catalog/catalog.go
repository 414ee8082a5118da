// Package catalog is the table of what Springtide shows of an object: each type of condition with its reasons, each
// refusal, and each reason of an event. A row has the kind of object, the code, the words and what to do. The
// components show rows of this table and no others, since only this package makes one; docs/reference is written from
// it.
package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
)

// Kind is the kind of an object, as its manifest says it.
type Kind string

// Kinds of Springtide's own objects.
const (
	Service  Kind = "ElasticService"
	Pool     Kind = "CapacityPool"
	Quota    Kind = "CapacityQuota"
	Job      Kind = "ElasticJob"
	Festival Kind = "FestivalPlan"
	Loan     Kind = "Loan"
	Share    Kind = "NodeShare"
)

// Kinds of the cluster's objects that events are written on.
const (
	Pod   Kind = "Pod"
	Node  Kind = "Node"
	Lease Kind = "Lease"
	HPA   Kind = "HorizontalPodAutoscaler"
)

// row is what rows of the table have in common.
type row struct {
	reason string
	// words are the message, as a format.
	words string
	// means says when the row is given, where its words are made of the case alone; of an event, what happened.
	means string
	// fix says what to do, where the words do not.
	fix string
}

// Reason is the code, in CamelCase and for good.
func (r *row) Reason() string { return r.reason }

// Means says when the row is given; empty where its words say it.
func (r *row) Means() string { return r.means }

// Fix says what to do; empty where nothing is to be done, or the words say it.
func (r *row) Fix() string { return r.fix }

// Text is the message. It takes as many arguments as the words have places for.
func (r *row) Text(args ...any) string { return fmt.Sprintf(r.words, args...) }

// Takes is how many arguments the words take.
func (r *row) Takes() int {
	n := 0
	for _, v := range places.FindAllString(r.words, -1) {
		if v != "%%" {
			n++
		}
	}
	return n
}

// Words are the message with an ellipsis for each value.
func (r *row) Words() string {
	words := places.ReplaceAllStringFunc(r.words, func(v string) string {
		if v == "%%" {
			return "%"
		}
		return "…"
	})
	return ellipses.ReplaceAllString(words, "…")
}

// ByTheCase reports whether the whole message is made of the case.
func (r *row) ByTheCase() bool { return strings.Trim(r.Words(), "… :;") == "" }

// places are where values stand in words.
var places = regexp.MustCompile(`%%|%[-+# 0]*[0-9.]*[a-zA-Z]`)

var ellipses = regexp.MustCompile(`…(…)+`)

// Verdict is one reason that a condition of one kind of object may have, with the status that goes with it.
type Verdict struct {
	row
	object Kind
	kind   string
	status metav1.ConditionStatus
}

// The statuses, by names that fit into a table.
const (
	yes   = metav1.ConditionTrue
	no    = metav1.ConditionFalse
	maybe = metav1.ConditionUnknown
)

// Object is the kind of object that has the condition.
func (v *Verdict) Object() Kind { return v.object }

// Type is the type of the condition.
func (v *Verdict) Type() string { return v.kind }

// Status is the status of the condition while it has this reason.
func (v *Verdict) Status() metav1.ConditionStatus { return v.status }

var verdicts []*Verdict

func verdict(object Kind, kind string, status metav1.ConditionStatus, reason, words string) *Verdict {
	v := &Verdict{row: row{reason: reason, words: words}, object: object, kind: kind, status: status}
	verdicts = append(verdicts, v)
	return v
}

// refused is the verdict of an object that is refused: reason and message are the refusal's.
func refused(object Kind, kind string) *Verdict { return verdict(object, kind, no, "", "%s") }

// accepted is the verdict of an object that is not refused; the other one goes with it.
func accepted(object Kind, words string) *Verdict {
	refused(object, ConditionAccepted)
	return verdict(object, ConditionAccepted, yes, "Accepted", words)
}

// OfRefusals reports whether reason and message of the condition are those of a refusal.
func (v *Verdict) OfRefusals() bool { return v.reason == "" }

// or adds a second message to a reason.
func (v *Verdict) or(words string) *Verdict {
	next := *v
	next.words = words
	verdicts = append(verdicts, &next)
	return &next
}

// when says when a verdict is given whose words are made of the case, and do what to do then.
func (v *Verdict) when(means string) *Verdict { v.means = means; return v }
func (v *Verdict) do(fix string) *Verdict     { v.fix = fix; return v }

// Verdicts lists all reasons of conditions, in the order of the table.
func Verdicts() []*Verdict { return slices.Clone(verdicts) }

// given finds the verdict with a reason that another package's enumeration gave; a test knows that each of them is in
// the table. A reason that is not is shown as it is, which serves an operator better than a panic.
func given(list []*Verdict, reason string) *Verdict {
	for _, v := range list {
		if v.reason == reason {
			return v
		}
	}
	v := *list[0]
	v.reason = reason
	return &v
}

// Refusal is why an object is not accepted: its conditions and its event have the reason and the message. Nothing is
// done for it.
type Refusal struct {
	row
	objects []Kind
}

// Objects are the kinds of object that are refused for it.
func (r *Refusal) Objects() []Kind { return r.objects }

// Of makes the problem of one object.
func (r *Refusal) Of(args ...any) fleet.Problem {
	return fleet.Problem{Reason: r.reason, Message: r.Text(args...)}
}

var refusals []*Refusal

func refusal(reason, words string, objects ...Kind) *Refusal {
	r := &Refusal{row{reason: reason, words: words}, objects}
	refusals = append(refusals, r)
	return r
}

func (r *Refusal) when(means string) *Refusal { r.means = means; return r }

// Refusals lists all refusals, in the order of the table.
func Refusals() []*Refusal { return slices.Clone(refusals) }

// Event is one reason of events on some kinds of object.
type Event struct {
	row
	objects []Kind
	kind    string
}

// Objects are the kinds of object that the event is on.
func (e *Event) Objects() []Kind { return e.objects }

// Type is Normal or Warning.
func (e *Event) Type() string { return e.kind }

// The types of events.
const (
	normal  = "Normal"
	warning = "Warning"
)

var events []*Event

func event(kind, reason, means, words string, objects ...Kind) *Event {
	e := &Event{row{reason: reason, words: words, means: means}, objects, kind}
	events = append(events, e)
	return e
}

// also adds another message of an event, on the same kinds of object or on others.
func (e *Event) also(words string, objects ...Kind) *Event {
	next := *e
	next.words = words
	if len(objects) > 0 {
		next.objects = objects
	}
	events = append(events, &next)
	return &next
}

func (e *Event) do(fix string) *Event { e.fix = fix; return e }

// Events lists all reasons of events, in the order of the table.
func Events() []*Event { return slices.Clone(events) }

// Refused is the event of a refusal: the object is refused, and nothing is done for it. Reason and message are the
// problem's.
func Refused(p fleet.Problem) *Event {
	return &Event{row{reason: p.Reason, words: "%s"}, []Kind{Service, Pool, Quota, Job}, warning}
}
