package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

func TestScrape(t *testing.T) {
	p, at := open(t), noon
	var page string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if page == "" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	extra := labels.FromStrings("job", "springtide")
	const all = `{__name__!=""}`

	for _, step := range []struct {
		name, page, want, err string
	}{
		{
			name: "samples get the target's labels, and a label that clashes is kept aside",
			page: "# HELP loans Loans by phase.\n# TYPE loans gauge\nloans{phase=\"Lent\",job=\"x\"} 3 1234\nloans{phase=\"Noticed\"} 1\n",
			want: `{__name__="loans", exported_job="x", job="springtide", phase="Lent"} 3
{__name__="loans", job="springtide", phase="Noticed"} 1
{__name__="up", job="springtide"} 1
`,
		},
		{
			name: "a series that is gone from the page is gone at once",
			page: "loans{phase=\"Lent\",job=\"x\"} 4\n",
			want: `{__name__="loans", exported_job="x", job="springtide", phase="Lent"} 4
{__name__="up", job="springtide"} 1
`,
		},
		{
			name: "a failed scrape ends all and says so",
			page: "",
			want: `{__name__="up", job="springtide"} 0` + "\n",
			err:  "503 Service Unavailable",
		},
		{
			name: "a broken page too",
			page: "loans{phase=",
			want: `{__name__="up", job="springtide"} 0` + "\n",
			err:  "parse",
		},
		{
			name: "and the next good one brings them back",
			page: "loans{phase=\"Lent\",job=\"x\"} 5\n",
			want: `{__name__="loans", exported_job="x", job="springtide", phase="Lent"} 5
{__name__="up", job="springtide"} 1
`,
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			at = at.Add(15 * time.Second)
			page = step.page
			err := p.Scrape(t.Context(), server.URL, at, extra)
			if step.err == "" && err != nil || step.err != "" && (err == nil || !strings.Contains(err.Error(), step.err)) {
				t.Errorf("Scrape = %v, want %q", err, step.err)
			}
			if got := query(t, p, all, at); got != step.want {
				t.Errorf("after the scrape:\n%swant:\n%s", got, step.want)
			}
		})
	}
}
