// Package pages reads what pages of the documentation show: commands to type, and examples in YAML. Tests judge and play them.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Shown is a command or an example of a page.
type Shown struct {
	Page string
	Line int
	Text string
	// Fenced says that it stands in a block of its own, so that it must be understood. In running text only what begins with a known program counts.
	Fenced bool
}

func (s Shown) String() string { return fmt.Sprintf("%s:%d: %s", s.Page, s.Line, s.Text) }

var (
	fence   = regexp.MustCompile("^\\s*```\\s*(\\w*)")
	span    = regexp.MustCompile("`([^`]+)`")
	notes   = regexp.MustCompile(`\s+#\s.*$`)
	setting = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)
)

// Read reads the commands of a page below a root, and its YAML examples, each in the order of the page. known reports whether a line begins with a
// program: blocks without a language may be diagrams or output, and running text has other code, so only programs count there.
func Read(root, page string, known func(line string) bool) (commands, examples []Shown, err error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, nil, err
	}
	lang, inside, pending, begin := "", false, "", 0
	for i, line := range strings.Split(string(text), "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			inside, lang = !inside, m[1]
			if inside && lang == "yaml" {
				examples = append(examples, Shown{Page: page, Line: i + 1})
			}
			continue
		}
		switch {
		case inside && lang == "yaml":
			examples[len(examples)-1].Text += line + "\n"
		case inside && slices.Contains([]string{"", "sh", "bash", "shell"}, lang):
			if pending == "" {
				begin = i + 1
			}
			line = notes.ReplaceAllString(strings.TrimSpace(line), "")
			if rest, more := strings.CutSuffix(line, `\`); more {
				pending += strings.TrimSpace(rest) + " "
				continue
			}
			line, pending = pending+line, ""
			if line != "" && !strings.HasPrefix(line, "#") && (lang != "" || known(line)) {
				commands = append(commands, Shown{page, begin, line, true})
			}
		case !inside:
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				if known(m[1]) && strings.Contains(m[1], " ") {
					commands = append(commands, Shown{Page: page, Line: i + 1, Text: m[1]})
				}
			}
		}
	}
	return commands, examples, nil
}

// Words splits a command as a shell does, without the variables that are set before it.
func Words(line string) (out []string) {
	var b strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open || b.Len() > 0 {
				out = append(out, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteRune(r)
		}
	}
	if open || b.Len() > 0 {
		out = append(out, b.String())
	}
	for len(out) > 0 && setting.MatchString(out[0]) {
		out = out[1:]
	}
	return out
}
