package kube

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/gates"
	"github.com/springtide/springtide/internal/kube/recorder"
)

// apiWrites counts what the controller writes. Reads are not counted: they come from the watches.
var apiWrites = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_api_writes_total",
	Help: "Requests to the API server that change an object (dry runs left out), by resource, with its subresource, and verb."}, []string{"resource", "verb"})

// RegisterWrites registers the counts of the writes of all clusters of this process, and of those that the fence refused.
func RegisterWrites(r prometheus.Registerer) error {
	return errors.Join(r.Register(apiWrites), fence.Register(r), r.Register(recorder.Unbelieved),
		r.Register(act.NewerWrites), r.Register(election.Rivals), r.Register(gates.Failures))
}

// countWrites counts the mutating requests of all clients that are made of a configuration.
func countWrites(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &writeCounter{next, apiWrites} })
}

// writeCounter counts mutating requests by resource and verb on their way out: one that is refused has cost the API server as much.
type writeCounter struct {
	next  http.RoundTripper
	count *prometheus.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (w *writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if verb := writeVerb(r.Method); verb != "" && r.URL.Query().Get("dryRun") == "" {
		if resource := writtenResource(r.URL.Path); resource != "" {
			w.count.WithLabelValues(resource, verb).Inc()
		}
	}
	return w.next.RoundTrip(r)
}

// WrappedRoundTripper implements client-go's RoundTripperWrapper, so that what lies below is still found.
func (w *writeCounter) WrappedRoundTripper() http.RoundTripper { return w.next }

func writeVerb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// writtenResource is the resource of a path, "loans/status" of /apis/springtide.dev/v1alpha1/loans/l/status. It holds no names, so the number of
// series is bounded by the kinds that the controller writes. Reviews of rights change nothing.
func writtenResource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	// An address may have a path of its own before the API's: /k8s/clusters/x/apis/...
	start := -1
	for i, p := range parts {
		if p == "api" && len(parts) > i+2 {
			start = i + 2
			break
		}
		if p == "apis" && len(parts) > i+3 {
			start = i + 3
			break
		}
	}
	if start < 0 {
		return ""
	}
	rest := parts[start:]
	if rest[0] == "namespaces" && len(rest) >= 3 {
		rest = rest[2:]
	}
	switch {
	case strings.HasSuffix(rest[0], "reviews"):
		return ""
	case len(rest) > 2:
		return rest[0] + "/" + rest[2]
	}
	return rest[0]
}
