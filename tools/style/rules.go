package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// mostWords is the most that a sentence of a page or a message may have.
const mostWords = 30

// rule is one row of the table of words: a pattern that is not used, and what is.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

func not(pattern, instead string) rule {
	return rule{regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`), instead}
}

// words is the table of words. A space in a pattern is any white space: a phrase may run over two lines.
var words = []rule{
	not(`reckon(ed|s|ing)?`, "compute, count or estimate"),
	not(`(is|are|was|were|be|been|being) told`, "report, notify, log, or set the condition"),
	not(`anew`, "again"),
	not(`mend(s|ed|ing)?`, "fix; in messages: to fix"),
	not(`nobody|somebody|whoever|whomever`, "the component, the user, the tenant"),
	not(`beside`, "next to, or in addition to"),
	not(`(goes|went) by|(go|going) by (what|which|its|their|how)|(rest|rests|rested|resting) on`, "uses, or depends on"),
	not(`(come|comes|coming|came) about`, "happen"),
	not(`for want of|lest|heed(s|ed|ing)?|hasten(s|ed|ing)?`, "without, so that ... not, use, shorten"),
	not(`(tell|tells|told|telling) (the|a|an|it|its|them|us|each|every|all|this|that|of|by|to|in|at|so|again|once|what|whether|how|which|when|where|why|who)`, "report, notify, log, or set the condition"),
	not(`may not`, "must not, or might not"),
	not(`(called|calls|call) home`, "recall"),
	not(`crews?|leavers?|footholds?|errands?|yardage|crumbs?|unsticks?|ousted`, "the word of the table of names"),
	{regexp.MustCompile(`(?:^|[.!?]\s+|\n\n)(What|Who|Whoever|That of|Those of|Of which)\s[^.?]*(?:\.|$)`), "a sentence that begins with a noun"},
}

// names are parts of identifiers and file names that are not used, each with what is.
var names = map[string]string{
	"crew": "role state", "crews": "role states", "leaver": "victim", "leavers": "victims", "foothold": "say what it is", "errand": "say what it is",
	"errands": "say what it is", "yardage": "say what it is", "crumb": "fragment", "crumbs": "fragments", "unstick": "fragments", "squeeze": "cap room",
	"ousted": "former leader", "hasten": "shorten", "hastened": "shortened", "told": "reported", "reckon": "compute", "reckoned": "computed",
	"anew": "again", "nobody": "none", "somebody": "any", "whoever": "any", "mend": "fix", "mended": "fixed", "heed": "use",
}

// methods are names of methods that are not used alone.
var methods = map[string]string{"tell": "report", "catch": "addSamples", "give": "fill", "keep": "store what is kept", "told": "reported"}

// files are names of files that are not used alone, without _test.
var files = map[string]string{"echo": "redelivery", "keep": "say what is kept", "past": "say whose past"}

// judgeName says what is wrong with an identifier, or nothing.
func judgeName(name string) string {
	for _, part := range parts(name) {
		if instead := names[part]; instead != "" {
			return fmt.Sprintf("the name %s: write %s", name, instead)
		}
	}
	return ""
}

// parts are the words of a name in camel case or with underscores, in lower case.
func parts(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}
