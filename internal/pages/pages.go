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
	// Output is what the page says that a command prints: a block of language text after it. A block that begins with a line "$ COMMAND" is that command's,
	// and every other one that of the command before it.
	Output string
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
	lang, inside, pending, begin, of := "", false, "", 0, -1
	for i, line := range strings.Split(string(text), "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			inside, lang = !inside, m[1]
			switch {
			case inside && lang == "yaml":
				examples = append(examples, Shown{Page: page, Line: i + 1})
			case inside && lang == "text":
				of = len(commands) - 1
			}
			continue
		}
		switch {
		case inside && lang == "text":
			if command, named := strings.CutPrefix(line, "$ "); named {
				of = slices.IndexFunc(commands, func(c Shown) bool { return c.Text == command && c.Output == "" })
				if of < 0 {
					return nil, nil, fmt.Errorf("%s:%d: no command %q before it has no output yet", page, i+1, command)
				}
				continue
			}
			if of >= 0 {
				commands[of].Output += line + "\n"
			}
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
				commands = append(commands, Shown{Page: page, Line: begin, Text: line, Fenced: true})
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

// Printed compares what a page quotes with what a command printed: each quoted line stands in the output, in the same order. Columns may be wider or narrower,
// any number stands for any other, and … stands for any text. It returns the first quoted line that is not there; empty when all are.
func Printed(output, quoted string) string {
	lines := strings.Split(output, "\n")
	for line := range strings.Lines(quoted) {
		pattern := quotedLine(line)
		if pattern == nil {
			continue // an empty line
		}
		i := slices.IndexFunc(lines, func(l string) bool { return pattern.MatchString(strings.Join(strings.Fields(l), " ")) })
		if i < 0 {
			return strings.TrimSpace(line)
		}
		lines = lines[i+1:]
	}
	return ""
}

var digits = regexp.MustCompile(`\d+`)

// quotedLine is what a quoted line stands for; nil for an empty one.
func quotedLine(line string) *regexp.Regexp {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	text := digits.ReplaceAllString(regexp.QuoteMeta(strings.Join(words, " ")), `\d+`)
	return regexp.MustCompile("^" + strings.ReplaceAll(text, "…", ".*") + "$")
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
