package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorAsksPrometheus: a required metric that is missing is a problem, an optional one is advice.
func TestDoctorAsksPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		data := any(map[string]any{"groups": []any{}})
		if strings.HasSuffix(r.URL.Path, "/query") {
			result := []any{map[string]any{"metric": map[string]any{}, "value": []any{1.0, "7"}}}
			if q := r.Form.Get("query"); q == "count(kube_pod_owner)" || q == "count(kube_pod_status_ready_time)" {
				result = []any{}
			}
			data = map[string]any{"resultType": "vector", "result": result}
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"status": "success", "data": data})
	}))
	defer server.Close()
	_, dsn := evening(t)
	d := &doctor{c: nil, prometheus: server.URL, store: dsn}
	if err := checkMetrics(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	if err := checkStore(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_ = d.print(&out, "table")
	golden(t, filepath.Join("testdata", "cluster", "metrics.txt"), out.String())
}
