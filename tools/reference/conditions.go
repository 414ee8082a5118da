package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/api/catalog"
)

// shown is what the rows of the catalogue have in common.
type shown interface {
	Words() string
	Means() string
	Fix() string
	ByTheCase() bool
}

// messages are the messages of rows with one reason, each once, with what each says where it is made of the case.
func messages[R shown](rows []R) string {
	var out []string
	for _, r := range rows {
		text := r.Words()
		if r.ByTheCase() {
			text = r.Means()
		}
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return message(strings.Join(out, "; or: "))
}

// fixes are what to do, of rows with one reason.
func fixes[R shown](rows []R) string {
	i := slices.IndexFunc(rows, func(r R) bool { return r.Fix() != "" })
	if i < 0 {
		return ""
	}
	return cell(rows[i].Fix())
}

// chunks splits a sorted list where the key changes.
func chunks[T any, K comparable](list []T, key func(T) K) (out [][]T) {
	for _, x := range list {
		if n := len(out); n > 0 && key(out[n-1][0]) == key(x) {
			out[n-1] = append(out[n-1], x)
			continue
		}
		out = append(out, []T{x})
	}
	return out
}

// rank puts the good state first.
func rank(v *catalog.Verdict) int {
	return slices.Index([]string{"True", "False", "Unknown"}, string(v.Status()))
}

// verdicts are the reasons of conditions in the order of the pages.
func verdicts() []*catalog.Verdict {
	return slices.SortedStableFunc(slices.Values(catalog.Verdicts()), func(a, b *catalog.Verdict) int {
		return cmp.Or(cmp.Compare(a.Object(), b.Object()), cmp.Compare(a.Type(), b.Type()),
			cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Reason(), b.Reason()))
	})
}

// refusalsOf are the refusals of a kind of object, in the order of their reasons.
func refusalsOf(object catalog.Kind) []*catalog.Refusal {
	out := slices.DeleteFunc(catalog.Refusals(), func(r *catalog.Refusal) bool {
		return !slices.Contains(r.Objects(), object)
	})
	slices.SortStableFunc(out, func(a, b *catalog.Refusal) int { return cmp.Compare(a.Reason(), b.Reason()) })
	return out
}

// pageOf is the page of one kind's conditions, without its ending.
func pageOf(object catalog.Kind) string { return "conditions-" + strings.ToLower(string(object)) }

// aboutConditions opens the page of one kind.
func aboutConditions(object catalog.Kind) string {
	return "# Conditions of " + string(object) +
		"\n\nFor operators and tenants. [Conditions](conditions.md) has the other kinds, and says how to read the " +
		"tables.\n\n" + notice
}

// conditionsPages are an index and a page for each kind of object.
func conditionsPages() map[string]string {
	var index strings.Builder
	index.WriteString(`# Conditions

For operators and tenants who read ` + "`status.conditions`" + ` of Springtide's objects.
The pages list every condition by kind, each status and reason that it may have, the
message, and what to do where the message does not say it.
An ellipsis stands for a value; a message that depends on the case is described instead.
A single occurrence is an [event](events.md).

` + notice + "\n| object | conditions | refusals |\n|---|---|---|\n")
	out := map[string]string{}
	for _, of := range chunks(verdicts(), (*catalog.Verdict).Object) {
		object := of[0].Object()
		if object == catalog.Share {
			out[pageOf(object)] = capabilities(of)
			fmt.Fprintf(&index, "| [%s](%s.md) | one for each capability of the machine | |\n", object, pageOf(object))
			continue
		}
		types := chunks(of, (*catalog.Verdict).Type)
		names := make([]string, len(types))
		for i, list := range types {
			names[i] = "`" + list[0].Type() + "`"
		}
		refusals := ""
		if page := refusalsPage(object); page != "" {
			out[refusalsAt(object)], refusals = page, "[refusals]("+refusalsAt(object)+".md)"
		}
		also := ""
		out[pageOf(object)] = conditionsOf(object, types)
		if len(strings.Fields(out[pageOf(object)])) > longPage {
			half, rest := pageOf(object), pageOf(object)+"-more"
			out[half], out[rest] = conditionsOf(object, types[:len(types)/2]), conditionsOf(object, types[len(types)/2:])
			also = fmt.Sprintf(", from %s on [here](%s.md)", names[len(types)/2], rest)
		}
		fmt.Fprintf(&index, "| [%s](%s.md)%s | %s | %s |\n", object, pageOf(object), also, strings.Join(names, ", "),
			refusals)
	}
	out["conditions"] = index.String()
	return out
}

// longPage is from how many words on a page is divided in two.
const longPage = 1950

// conditionsOf is the page of one kind of object, by the types of its conditions.
func conditionsOf(object catalog.Kind, types [][]*catalog.Verdict) string {
	var b strings.Builder
	b.WriteString(aboutConditions(object))
	for _, list := range types {
		kind := list[0].Type()
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| status | reason | message | what to do |\n|---|---|---|---|\n", kind,
			upper(catalog.Meaning(object, kind)))
		for _, rows := range chunks(list, func(v *catalog.Verdict) string { return string(v.Status()) + v.Reason() }) {
			if rows[0].OfRefusals() {
				fmt.Fprintf(&b, "| False | [a refusal](%s.md) | what is wrong, and how to fix it | |\n",
					refusalsAt(object))
				continue
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", rows[0].Status(), rows[0].Reason(), messages(rows), fixes(rows))
		}
	}
	return b.String()
}

// refusalsAt is the page of the refusals of a kind of object, without its ending.
func refusalsAt(object catalog.Kind) string { return pageOf(object) + "-refusals" }

// refusalsPage lists the refusals of one kind of object; empty where it has none.
func refusalsPage(object catalog.Kind) string {
	refused := refusalsOf(object)
	if len(refused) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Refusals of %s\n\nFor operators and tenants. Nothing is done for an object that is refused. Its "+
		"[condition](%s.md) Accepted and its [event](events.md) have the same reason and message.\n\n%s\n"+
		"| reason | message |\n|---|---|\n", object, pageOf(object), notice)
	for _, r := range refused {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Reason(), messages([]*catalog.Refusal{r}))
	}
	return b.String()
}

// capabilities are the conditions of a NodeShare: what the agent finds on a machine.
func capabilities(has []*catalog.Verdict) string {
	var b strings.Builder
	b.WriteString(aboutConditions(catalog.Share) +
		"\nThe node agent sets one condition for each capability of the machine. A missing capability is skipped, and the " +
		"message says why.\n\n" +
		"| condition | message while True |\n|---|---|\n")
	for _, rows := range chunks(has, (*catalog.Verdict).Type) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", rows[0].Type(), messages(rows))
	}
	b.WriteString("\n| reason while False | message | what to do |\n|---|---|---|\n")
	lacks := catalog.Lacks()
	slices.SortStableFunc(lacks, func(a, b *catalog.Lack) int { return cmp.Compare(a.Reason(), b.Reason()) })
	for _, rows := range chunks(lacks, (*catalog.Lack).Reason) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", rows[0].Reason(), messages(rows), fixes(rows))
	}
	return b.String()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
