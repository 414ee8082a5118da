package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/pages"
	"github.com/springtide/springtide/sim/scenario"
)

// root of the checkout, seen from here.
var root = filepath.Join("..", "..")

// pagesOfDocs are the pages whose commands are judged. docs/cli*.md are made of the commands themselves, and pages of results below docs/benchmarks name
// the commands of their time; README.md of it is held.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if name = filepath.ToSlash(name); strings.HasPrefix(name, "docs/cli") || strings.HasPrefix(name, "docs/benchmarks/") && name != "docs/benchmarks/README.md" {
			return err
		}
		out = append(out, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// commandsOf reads the commands of a page, and its YAML examples.
func commandsOf(t *testing.T, page string) (commands, examples []pages.Shown) {
	t.Helper()
	commands, examples, err := pages.Read(root, page, func(line string) bool { return programOf(line) != "" })
	if err != nil {
		t.Fatal(err)
	}
	return commands, examples
}

// programOf is the judge's name for the program of a line, without variables before it and folders; empty where it is not known.
func programOf(line string) string {
	w := pages.Words(line)
	if len(w) == 0 {
		return ""
	}
	name := strings.TrimPrefix(w[0], "bin/")
	if judges[name] == nil && !strings.HasPrefix(name, "hack/") {
		return ""
	}
	if strings.HasPrefix(name, "hack/") {
		return "hack"
	}
	return name
}

// judges say what is wrong with the arguments of a program; nil where they are as they should be.
var judges map[string]func([]string) error

func init() {
	judges = map[string]func([]string) error{
		"springtide": judgeSpringtide, "make": judgeMake, "go": judgeGo, "helm": judgeHelm, "kubectl": judgeKubectl, "hack": judgeScript,
		"springtide-lab": func(w []string) error { return judgeSource("springtide-lab", w, "cmd/springtide-lab", "lab") },
		"springtide-agent": func(w []string) error {
			return judgeSource("springtide-agent", w, "cmd/springtide-agent", "agent/host")
		},
		"springtide-scheduler": func(w []string) error {
			return judgeSource("springtide-scheduler", w, "cmd/springtide-scheduler", "scheduler/host/command", "scheduler/host")
		},
		"export": func([]string) error { return nil }, // a variable of the reader's shell
	}
}

// spared are the examples that are not whole, each with the reason.
var spared = map[string]string{
	"docs/link-groups.md": "shows the fields of a group alone",
	"docs/quotas.md":      "its parent is written elsewhere",
}

// playedBy names, for each command in a block of its own that TestDocsCommands judges and does not run, the test that runs it, with its package.
// "none: " begins the reason why no test does.
var playedBy = map[string]string{
	"make demo":  "TestTutorial ./e2e",
	"make test":  "none: it runs this test",
	"make build": "none: make test begins with it",
	"make quick": "none: it runs tests of what changed, this one among them",
	"make help":  "none: it prints the Makefile's own comments",

	"helm install springtide-crds deploy/chart/springtide-crds --namespace springtide-system --create-namespace":                                                                            "TestHelm ./deploy",
	"helm install springtide deploy/chart/springtide --namespace springtide-system --set image.registry=REGISTRY --set controller.prometheus=URL":                                           "TestHelm ./e2e/node",
	"helm install springtide deploy/chart/springtide --namespace springtide-system --set image.registry=registry.example --set controller.prometheus=http://prometheus.monitoring.svc:9090": "TestHelm ./e2e/node",
	"helm uninstall springtide --namespace springtide-system --timeout 45m":                                                                                                                 "TestHelm ./e2e/node",
	"helm upgrade springtide-crds deploy/chart/springtide-crds --namespace springtide-system --set keep=false":                                                                              "TestHelm ./deploy",
	"helm uninstall springtide-crds --namespace springtide-system":                                                                                                                          "TestHelm ./deploy",
	"helm upgrade springtide deploy/chart/springtide --set scheduler.enabled=true --set scheduler.partitions=3 --reuse-values":                                                              "TestChartPartitions ./deploy",
	"helm upgrade springtide deploy/chart/springtide --set scheduler.enabled=true --reuse-values":                                                                                           "TestHelm ./deploy",
	"springtide doctor --prometheus URL":                         "TestDoctorExamines ./internal/cli/doctor",
	"springtide doctor --prometheus http://127.0.0.1:9090":       "TestDoctorExamines ./internal/cli/doctor",
	"kubectl port-forward -n monitoring service/prometheus 9090": "none: kubectl's own verb",
	"springtide uninstall":                                       "TestUninstallSaysWhatIsLost ./internal/cli/uninstall",
	"springtide upgrade check":                                   "TestUpgradeCheck ./internal/cli/upgrade",
	"springtide upgrade check --to 1.37":                         "TestUpgradeOfKubernetes ./internal/cli/upgrade",
	"kubectl apply -f my-service.yaml":                           "TestTutorial ./e2e",
	"kubectl apply --server-side -k deploy/base":                 "TestOnARealAPIServer ./deploy",
	"kubectl apply --server-side -k deploy/base/agent":           "TestOnARealAPIServer ./deploy",
	"kubectl apply --server-side -k deploy/base/scheduler":       "TestOnARealAPIServer ./deploy",
	"springtide-agent --node NODE --kubeconfig FILE --dry-run":   "TestDryRun ./agent/host",
	"make images": "TestRealArchives ./tools/images",
	"kubectl label namespace springtide-system pod-security.kubernetes.io/enforce=restricted": "TestHelm ./e2e/node",
	"FULL=1 go test -count=1 -v -timeout 2h -run TestProtocol ./sim/check":                    "none: minutes of processor time and the wider bounds of the same test",
	"PARTS=model make bench-shift":                      "none: it prints how long TestProtocol takes",
	"go test -v -run TestProtocol ./sim/check":          "TestProtocol ./sim/check",
	"go test -v -run TestEachGuardIsNeeded ./sim/check": "TestEachGuardIsNeeded ./sim/check",
	"go test -v -run TestEveryPrecondition ./sim/check": "TestEveryPreconditionIsTried ./sim/check",
	"go test -v -run TestSecondLines ./sim/check":       "TestSecondLines ./sim/check",
	"kubectl create rolebinding springtide-host-lists -n train --clusterrole=springtide-host-lists --serviceaccount=springtide-system:springtide-controller": "TestPlaneHostList ./internal/kube",
	"kubectl create rolebinding springtide-templates -n shop --clusterrole=springtide-templates --serviceaccount=springtide-system:springtide-controller":    "TestPlaneResize ./internal/kube",
	"kubectl get pod web-7f9c-x2x4z -o jsonpath='{.status.conditions[?(@.type==\"PodScheduled\")].message}'":                                                 "none: kubectl's own verb; tests of scheduler/host read the condition",
	"kubectl create clusterrolebinding springtide-metrics --clusterrole springtide-metrics-reader --serviceaccount monitoring:prometheus":                    "TestServing ./deploy",
	"springtide simulate --scenario sim/scenario/examples/faults.yaml --seeds 1..100":                                                                        "none: minutes of processor time; the scenario is loaded here, and TestSeedsBreakNothing of sim plays its faults",
	"springtide simulate --scenario sim/scenario/examples/week.yaml":                                                                                         "none: minutes of processor time; the scenario is loaded here, and make bench-shift plays it",
	"springtide simulate --scenario fleet.yaml --policies all --out result.json --html result.html":                                                          "TestSimulatePage ./internal/cli/simulate",

	"springtide whatif -f services.yaml --prometheus http://prometheus.monitoring:9090": "TestTutorial ./e2e",
	"kubectl apply -f services.yaml": "TestTutorial ./e2e",
	"springtide slo -n shop":         "TestTutorial ./e2e",
}

// readOnTheLab are the pages that TestTutorial of e2e plays whole: it fails for a command that it does not know.
var readOnTheLab = []string{"docs/tutorial.md", "docs/tutorial-slo.md", "docs/howto.md"}

// judgePlayed makes sure that some test runs a command, or that a reason stands why none does.
func judgePlayed(t *testing.T, c pages.Shown, used map[string]bool) {
	t.Helper()
	by, ok := playedBy[c.Text]
	if used[c.Text] = true; !ok {
		t.Errorf("%s: no test runs this command: name one in playedBy, or say why none does", c)
		return
	}
	if strings.HasPrefix(by, "none: ") {
		return
	}
	name, folder, _ := strings.Cut(by, " ")
	if !declares(filepath.Join(root, folder), regexp.MustCompile("^"+name+"$")) {
		t.Errorf("%s: there is no %s", c, by)
	}
}

// TestDocsCommands: every command that README and docs show is one that there is. Verbs of our command line are run, on a cluster in memory, with names
// that are there in place of placeholders; wrong usage fails. Targets of make, packages and tests of go, charts and values of helm, files and
// kustomizations of kubectl must be there: what they do takes a cluster or hours, and the tests of deploy, e2e and e2e/node do it.
func TestDocsCommands(t *testing.T) {
	n, used := 0, map[string]bool{}
	for _, page := range pagesOfDocs(t) {
		commands, _ := commandsOf(t, page)
		for _, c := range commands {
			n++
			ran := false
			program := programOf(c.Text)
			if program == "" {
				t.Errorf("%s: no test judges this command: teach internal/cli/docs_test.go, or spare it with a reason", c)
				continue
			}
			// The text after a pipe or another && is a command of its own.
			for _, part := range regexp.MustCompile(`\s(?:\||&&|;)\s`).Split(c.Text, -1) {
				w := pages.Words(part)
				name := programOf(part)
				if name == "" {
					continue // grep and the like
				}
				if name != "hack" {
					w = w[1:]
				}
				if i := slices.IndexFunc(w, func(s string) bool { return s == ">" || s == "<" }); i >= 0 {
					w = w[:i]
				}
				if err := judges[name](w); err != nil {
					t.Errorf("%s: %v", c, err)
				} else if name == "springtide" {
					ran = playDocumented(t, c, w) || ran
				}
			}
			if c.Output != "" && !slices.Contains(readOnTheLab, page) {
				t.Errorf("%s: no test compares the output that the page quotes: show it on a page of readOnTheLab", c)
			}
			if c.Fenced && !ran && !slices.Contains(readOnTheLab, page) {
				judgePlayed(t, c, used)
			}
		}
	}
	for text := range playedBy {
		if !used[text] {
			t.Errorf("no page shows %q any more, or this test runs it: take it out of playedBy", text)
		}
	}
	for _, page := range readOnTheLab {
		commands, _ := commandsOf(t, page)
		quoted := 0
		for _, c := range commands {
			if c.Output != "" {
				quoted++
			}
		}
		if quoted < 5 {
			t.Errorf("%s quotes the output of %d commands: a reader cannot tell whether what came is right", page, quoted)
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

// placeholder is a word that stands for a name of the reader's.
var placeholder = regexp.MustCompile(`^[A-Z][A-Z0-9_/|.]*$|^…$|^\.\.\.$|^<.*>$`)

// judgeSpringtide asks the tree of commands: the verb, its flags, and how many arguments it takes.
// takesValue reports whether a word is a flag whose value is the next one.
func takesValue(cmd *cobra.Command, word string) bool {
	name, long := strings.CutPrefix(word, "--")
	f := cmd.Flags().Lookup(name)
	if !long && len(word) == 2 && word[0] == '-' {
		f = cmd.Flags().ShorthandLookup(word[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

func judgeSpringtide(w []string) error {
	tree := newRootCommand()
	w = slices.DeleteFunc(slices.Clone(w), func(s string) bool { return s == "[flags]" || s == "..." || s == "…" })
	for i := range w {
		w[i] = strings.Trim(w[i], "[]")
	}
	cmd, rest, err := tree.Find(w)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() {
		for i, r := range rest {
			if i > 0 && takesValue(cmd, rest[i-1]) {
				continue
			}
			if !strings.HasPrefix(r, "-") && !placeholder.MatchString(r) && !strings.Contains(r, "|") {
				return fmt.Errorf("%s has no %q", cmd.CommandPath(), r)
			}
			for verb := range strings.SplitSeq(r, "|") {
				if strings.Contains(r, "|") && !hasVerb(cmd, verb) {
					return fmt.Errorf("%s has no %q", cmd.CommandPath(), verb)
				}
			}
		}
		return nil
	}
	cmd.InitDefaultHelpFlag()
	var values []string
	for i, r := range rest {
		if name, ok := strings.CutPrefix(r, "--"); ok {
			name, _, given := strings.Cut(name, "=")
			f := cmd.Flags().Lookup(name)
			if f == nil {
				f = cmd.InheritedFlags().Lookup(name)
			}
			if f == nil {
				return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
			}
			if i == len(rest)-1 && !given && f.NoOptDefVal == "" {
				return nil // `--flag` alone, as a name of it
			}
			if given || f.NoOptDefVal != "" {
				continue
			}
			values = append(values, name+"="+rest[i+1])
		}
	}
	for _, v := range values {
		name, file, _ := strings.Cut(v, "=")
		if name != "scenario" || !strings.Contains(file, "/") {
			continue
		}
		if _, err := scenario.Load(filepath.Join(root, file)); err != nil {
			return err
		}
	}
	for i := range rest { // values of any type that a flag takes
		if placeholder.MatchString(rest[i]) {
			rest[i] = "1"
		}
	}
	if n := len(rest); n > 0 && len(rest[n-1]) == 2 && rest[n-1][0] == '-' && cmd.Flags().ShorthandLookup(rest[n-1][1:]) != nil {
		return nil // `-f` alone
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if cmd.Args == nil || len(args) == 0 {
		return nil // the verb by name, its arguments left out
	}
	return cmd.Args(cmd, args)
}

// names are what stands for placeholders in the cluster in memory.
var names = strings.NewReplacer("NAMESPACE/NAME", "shop/cart", "NAMESPACE", "shop", "NODE|LOAN", "node-17", "NODE", "node-17", "LOAN", "node-17-aa", "TENANT", "shop", "SERVICE", "shop/cart", "NAME", "cart")

// playDocumented runs a verb of operators, and reports whether it did; what asks Prometheus, waits for a cluster, follows a watch, or is named
// without its arguments, is not.
func playDocumented(t *testing.T, c pages.Shown, w []string) (ran bool) {
	t.Helper()
	cmd, rest, err := newRootCommand().Find(w)
	verb, _, _ := strings.Cut(strings.TrimPrefix(cmd.CommandPath(), "springtide "), " ")
	operators := slices.ContainsFunc(cluster.Commands(cluster.Connect, operatorVerbs...), func(x *cobra.Command) bool { return x.Name() == verb })
	if err != nil || !operators || cmd.HasSubCommands() || slices.Contains([]string{"doctor", "validate", "uninstall", "upgrade"}, verb) || len(rest) == 0 && !c.Fenced {
		return false
	}
	for i := range w {
		if w[i] == "-w" || w[i] == "-f" || w[i] == "--store" || strings.ContainsAny(w[i], "[…") {
			return false
		}
		w[i] = names.Replace(w[i])
	}
	if last := w[len(w)-1]; strings.HasPrefix(last, "--") && !strings.Contains(last, "=") && cmd.Flags().Lookup(last[2:]).NoOptDefVal == "" {
		return false // a flag by name
	}
	if got := newWorld(t).Run(w...); strings.Contains(got, "(exit code 2)") {
		t.Errorf("%s: %s", c, got)
	}
	return true
}

func hasVerb(c *cobra.Command, name string) bool {
	return slices.ContainsFunc(c.Commands(), func(x *cobra.Command) bool { return x.Name() == name || x.HasAlias(name) })
}

func judgeMake(w []string) error {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	for _, target := range w {
		if strings.Contains(target, "=") || strings.HasPrefix(target, "-") {
			name, _, _ := strings.Cut(target, "=")
			if !strings.HasPrefix(target, "-") && !bytes.Contains(text, []byte(name)) {
				return fmt.Errorf("the Makefile knows no variable %s", name)
			}
			continue
		}
		if !placeholder.MatchString(target) && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).Match(text) {
			return fmt.Errorf("the Makefile has no target %s", target)
		}
	}
	return nil
}

// judgeGo looks for the packages of `go run` and `go test`, and for the tests that -run names.
func judgeGo(w []string) error {
	var folders []string
	run := ""
	for i, s := range w {
		if strings.HasPrefix(s, "./") {
			folders = append(folders, strings.TrimSuffix(s, "/..."))
		}
		if s == "-run" && i+1 < len(w) {
			run = w[i+1]
		}
	}
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			return err
		}
		if run == "" {
			continue
		}
		pattern, err := regexp.Compile(strings.SplitN(run, "/", 2)[0])
		if err != nil {
			return err
		}
		if !declares(filepath.Join(root, f), pattern) {
			return fmt.Errorf("%s has no test %s", f, run)
		}
	}
	return nil
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)

func declares(folder string, pattern *regexp.Regexp) bool {
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return false
		}
		for _, m := range testName.FindAllSubmatch(text, -1) {
			if pattern.Match(m[1]) {
				return true
			}
		}
	}
	return false
}

// judgeHelm looks for charts, and for the values that --set names.
func judgeHelm(w []string) error {
	var chart string
	for _, s := range w {
		if strings.HasPrefix(s, "deploy/") {
			chart = s
		}
	}
	if chart == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, chart, "values.yaml"))
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	for i, s := range w {
		if s != "--set" && s != "--set-string" || i+1 == len(w) {
			continue
		}
		for assignment := range strings.SplitSeq(w[i+1], ",") {
			path, _, _ := strings.Cut(assignment, "=")
			at := any(values)
			for key := range strings.SplitSeq(path, ".") {
				m, ok := at.(map[string]any)
				if _, there := m[key]; !ok || !there && len(m) > 0 {
					return fmt.Errorf("%s has no value %s", chart, path)
				}
				at = m[key]
			}
		}
	}
	return nil
}

// judgeKubectl looks for files and kustomizations of ours.
func judgeKubectl(w []string) error {
	if len(w) > 0 && w[0] == "springtide" {
		return judgeSpringtide(w[1:])
	}
	for i, s := range w {
		if s != "-k" && s != "-f" || i+1 == len(w) || !strings.Contains(w[i+1], "/") || strings.Contains(w[i+1], "://") {
			continue
		}
		path := filepath.Join(root, w[i+1])
		if s == "-k" {
			path = filepath.Join(path, "kustomization.yaml")
		}
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	return nil
}

func judgeScript(w []string) error {
	_, err := os.Stat(filepath.Join(root, w[0]))
	return err
}

// judgeSource looks in the source of a command whose tree cannot be asked from here: its verbs and flags stand there as they are written.
func judgeSource(name string, w []string, folders ...string) error {
	var source []byte
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			source = append(source, text...)
		}
	}
	for i, s := range w {
		flag, isFlag := strings.CutPrefix(s, "--")
		flag, _, _ = strings.Cut(flag, "=")
		switch {
		case isFlag && !bytes.Contains(source, []byte(`"`+flag+`"`)):
			return fmt.Errorf("%s has no flag --%s", name, flag)
		case i == 0 && !isFlag && !placeholder.MatchString(s) && !bytes.Contains(source, []byte(`"`+s)):
			return fmt.Errorf("%s has no verb %s", name, s)
		}
	}
	return nil
}

// TestDocsExamples: the objects of ours that pages show are valid, as `springtide validate` finds. An example that shows a part of an object alone has no
// metadata, and is not judged.
func TestDocsExamples(t *testing.T) {
	n, used := 0, map[string]bool{}
	for _, page := range pagesOfDocs(t) {
		_, examples := commandsOf(t, page)
		for _, e := range examples {
			if !strings.Contains(e.Text, "springtide.dev/v1alpha1") || !strings.Contains(e.Text, "metadata") || strings.Contains(e.Text, "...") {
				continue
			}
			n++
			cmd := newRootCommand()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetIn(strings.NewReader(e.Text))
			cmd.SetArgs([]string{"validate", "-f", "-"})
			if err := cmd.Execute(); err != nil {
				if spared[page] != "" && !used[page] {
					used[page] = true
					continue
				}
				t.Errorf("%s:%d: the example is refused: %v\n%s", e.Page, e.Line, err, &out)
			}
		}
	}
	for page := range spared {
		if !used[page] {
			t.Errorf("an example of %s is spared, and all of it is valid", page)
		}
	}
	if n < 5 {
		t.Errorf("only %d examples were found", n)
	}
}

// TestDocsNameTests: the pages that name a test for each promise name tests that there are.
func TestDocsNameTests(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testName.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"docs/benchmarks/install.md", "docs/benchmarks/sources.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
		for _, name := range found {
			if !there[name] {
				t.Errorf("%s names %s, which is not there", page, name)
			}
		}
		if len(found) < 20 {
			t.Errorf("%s names %d tests: is it still read?", page, len(found))
		}
	}
}

// TestDocsExpectations: each of the 33 expectations of operators that the page lists names what it is held by (a test, a page or a target of make) or says what
// is missing, and the sentence at its end counts them.
func TestDocsExpectations(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/benchmarks/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, partly, not := 0, 0, 0
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|([^|]*)\|$`).FindAllStringSubmatch(string(text), -1) {
		here, held := m[2], false
		if rows++; m[1] != strconv.Itoa(rows) {
			t.Fatalf("row %s stands at place %d", m[1], rows)
		}
		if strings.Contains(here, "partly: ") {
			partly++
		}
		if strings.HasPrefix(here, "not met: ") {
			not++
			continue
		}
		for _, make := range regexp.MustCompile("`make ([^`]+)`").FindAllStringSubmatch(here, -1) {
			held = true
			if err := judgeMake(strings.Fields(make[1])); err != nil {
				t.Errorf("row %d: %v", rows, err)
			}
		}
		if !held && !strings.Contains(here, "](") && !strings.Contains(m[3], "Test") && !strings.Contains(here, "partly: ") {
			t.Errorf("row %d names no test, page or target: %s", rows, m[0])
		}
	}
	if want := fmt.Sprintf("%d are met, %d partly, and %d is not.", rows-partly-not, partly, not); rows != 33 || !strings.Contains(string(text), want) {
		t.Errorf("the page has %d expectations and does not say %q", rows, want)
	}
}
