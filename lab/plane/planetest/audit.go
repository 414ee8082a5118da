package planetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/lab/plane"
)

// Audit has a plane's API server write down what some accounts ask for.
type Audit struct {
	log      string
	accounts []string
}

// NewAudit adds the API server's audit log to the options of a plane that is not started yet.
func NewAudit(t testing.TB, o *plane.Options, accounts ...string) *Audit {
	t.Helper()
	dir := t.TempDir()
	names, err := json.Marshal(accounts)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "audit.yaml")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n  - level: Metadata\n    users: " + string(names) + "\n  - level: None\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &Audit{log: filepath.Join(dir, "audit.log"), accounts: accounts}
	if o.ExtraArgs == nil {
		o.ExtraArgs = map[string][]string{}
	}
	o.ExtraArgs[plane.APIServer] = append(o.ExtraArgs[plane.APIServer], "--audit-policy-file="+policy, "--audit-log-path="+a.log)
	return a
}

// Used returns the rights that each account used so far, as "verb resource.group", and those that it was refused.
func (a *Audit) Used(t testing.TB) (used map[string]map[string]bool, refused []string) {
	t.Helper()
	f, err := os.Open(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used = map[string]map[string]bool{}
	for _, account := range a.accounts {
		used[account] = map[string]bool{}
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef *struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Group       string `json:"apiGroup"`
				Namespace   string `json:"namespace"`
				Name        string `json:"name"`
			} `json:"objectRef"`
			Status struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"responseStatus"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the line that is being written
		}
		if e.ObjectRef == nil || used[e.User.Username] == nil {
			continue
		}
		right := RightName(e.Verb, e.ObjectRef.Group, strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/"))
		used[e.User.Username][right] = true
		if e.Status.Code == 403 {
			refused = append(refused, fmt.Sprintf("%s: %s %s/%s: %s", e.User.Username, right, e.ObjectRef.Namespace, e.ObjectRef.Name, e.Status.Message))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read the audit log: %v", err) // the lines after it may hold a refusal
	}
	return used, refused
}

// RightName writes a right as the rules of a role do.
func RightName(verb, group, resource string) string {
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
}
