package main

import (
	"fmt"
	"strings"

	"github.com/springtide/springtide/reason"
)

// details are the groups of reasons that stand within others, with the pages that they have of their own.
var details = map[string]string{"Of machines and loans": "reasons-loans", "Of pools and machines that stay": "reasons-pools",
	"Of jobs and quotas": "reasons-jobs", "Of what a replica carries": "reasons-capacity", "Of sizes": "reasons-sizes",
	"Of parts of a size": "reasons-parts", "Of pods in standby": "reasons-standby",
	"Of shares of tenants": "reasons-shares", "Of acts": "reasons-acts",
	"Why a quantile is in force": "reasons-quantiles"}

// reasonsPages list the table of reasons.
func reasonsPages() map[string]string {
	var index strings.Builder
	index.WriteString(`# Reasons

For operators who read ` + "`springtide explain`" + `, the journal, events or conditions and want to know what a code means. The page lists each reason by its code, with when it is given and its words; an
ellipsis stands for a value, or for another reason. The words of such other reasons have pages of their own: [of machines and loans](reasons-loans.md), [of pools and machines that
stay](reasons-pools.md), [of jobs and quotas](reasons-jobs.md), [of what a replica carries](reasons-capacity.md), [of
sizes](reasons-sizes.md), [of parts of a size](reasons-parts.md), [of pods in standby](reasons-standby.md). So do
those [of shares of tenants](reasons-shares.md), [of acts](reasons-acts.md) and
[of quantiles](reasons-quantiles.md).

` + notice)
	out := map[string]string{}
	for _, g := range reason.Groups() {
		var b strings.Builder
		for _, c := range g.Codes {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c, cell(c.Means()), message(c.Words()))
		}
		const head = "| code | given when | words |\n|---|---|---|\n"
		if page := details[g.Title]; page != "" {
			out[page] = fmt.Sprintf("# Reasons: %s\n\nFor operators. These reasons stand within others, and say what happened. [Reasons](reasons.md) has the others, and says how to read the table.\n\n%s\n%s%s",
				strings.ToLower(g.Title), notice, head, &b)
			continue
		}
		fmt.Fprintf(&index, "\n## %s\n\n%s%s", g.Title, head, &b)
	}
	out["reasons"] = index.String()
	return out
}
