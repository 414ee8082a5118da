package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/usage"
)

// promServer answers range queries by a function of the series and the time, and counts the points that it was asked for.
type promServer struct {
	*httptest.Server
	asked  []int
	tokens []string
	answer func(w http.ResponseWriter, query string) bool
}

func newPromServer(t *testing.T) *promServer {
	t.Helper()
	p := &promServer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.tokens = append(p.tokens, r.Header.Get("Authorization"))
		if p.answer != nil && p.answer(w, r.FormValue("query")) {
			return
		}
		start, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		end, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		p.asked = append(p.asked, int((end-start)/step)+1)
		var cart, api [][2]any
		for at := start; at <= end; at += step {
			cart = append(cart, [2]any{at, fmt.Sprint(100 + 50*math.Sin(2*math.Pi*at/86400))})
			if at >= 1767225600 { // the second series begins on 1 January 2026
				api = append(api, [2]any{at, "7"})
			}
		}
		var result []any
		result = append(result, map[string]any{"metric": map[string]string{"service": "cart", "job": "web"}, "values": cart})
		if len(api) > 0 {
			result = append(result, map[string]any{"metric": map[string]string{"__name__": "rate", "service": "api"}, "values": api})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
	}))
	t.Cleanup(p.Close)
	return p
}

// springtide runs the CLI in this process.
func springtide(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, bad bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&bad)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), bad.String(), err
}

func TestForecastFromPrometheus(t *testing.T) {
	p := newPromServer(t)
	token := filepath.Join(t.TempDir(), "http.yaml")
	if err := os.WriteFile(token, []byte("authorization: {credentials: secret}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := springtide(t, "forecast", "--prometheus", p.URL, "--query", "rate", "--from", "60d", "--to", "2026-01-20T00:02:00Z",
		"--horizon", "2", "--quantiles", "0.5", "--prometheus-http", token)
	if err != nil {
		t.Fatal(err)
	}
	// 60 days of five minutes, both ends on the grid, asked for in parts.
	if want := []int{10000, 7280}; fmt.Sprint(p.asked) != fmt.Sprint(want) {
		t.Errorf("asked for %v points, want %v", p.asked, want)
	}
	if p.tokens[0] != "Bearer secret" {
		t.Errorf("authorised by %q", p.tokens[0])
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%v\n%s", err, out)
	}
	// After the point at 00:00 comes the step of 00:05.
	cart := 100 + 50*math.Sin(2*math.Pi*300/86400)
	for _, want := range []struct {
		row   int
		id    string
		value float64
	}{{1, `rate{service="api"}`, 7}, {3, `{job="web", service="cart"}`, cart}} {
		got, err := strconv.ParseFloat(rows[want.row][3], 64)
		if err != nil || rows[want.row][0] != want.id || rows[want.row][1] != "1" || rows[want.row][2] != "2026-01-20T00:05:00Z" || math.Abs(got-want.value) > 0.01*want.value {
			t.Errorf("row %d is %v, want %s at about %v", want.row, rows[want.row], want.id, want.value)
		}
	}
}

func TestBacktestFromPrometheus(t *testing.T) {
	p := newPromServer(t)
	out, _, err := springtide(t, "backtest", "--prometheus", p.URL, "--query", "rate", "--to", "1769000000", "--step", "1h", "--horizon", "24",
		"--origins", "2", "--models", "seasonal-day")
	if err != nil || !strings.Contains(out, `{job="web", service="cart"}   seasonal-day   2`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPrometheusErrors(t *testing.T) {
	p := newPromServer(t)
	p.answer = func(w http.ResponseWriter, query string) bool {
		switch query {
		case "bad(":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
		case "partial":
			fmt.Fprint(w, `{"status":"success","warnings":["a store is gone"],"data":{"resultType":"matrix","result":[]}}`)
		case "nothing":
			fmt.Fprint(w, `{"status":"success","warnings":["PromQL info: no counter"],"data":{"resultType":"matrix","result":[]}}`)
		case "down":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			return false
		}
		return true
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	tests := []struct {
		args  string
		usage bool
		want  string
	}{
		{"--prometheus U --in x.csv --query q", true, "--in and --prometheus: give one of them"},
		{"--prometheus U", true, "--prometheus needs --query, the expression to read"},
		{"--query q", true, "--query needs --prometheus, the URL to read from"},
		{"--from 28d", true, "--from needs --prometheus, the URL to read from"},
		{"--prometheus prometheus:9090 --query q", true, "want a URL such as http://prometheus:9090"},
		{"--prometheus U --query q --from yesterday", true, `--from "yesterday" is no time: write RFC 3339`},
		{"--prometheus U --query q --to 1767225600 --from 2026-02-01T00:00:00Z", true, "--from 2026-02-01T00:00:00Z is not before --to 2026-01-01T00:00:00Z"},
		{"--prometheus U --query q --step 10ms", true, "--step 10ms: Prometheus is asked at whole seconds"},
		{"--prometheus U --query q --prometheus-http /no/such.yaml", true, "--prometheus-http: open /no/such.yaml"},
		{"--prometheus U --query bad(", true, "--query bad(: bad_data: parse error"},
		{"--prometheus U --query partial", false, "partial answer: a store is gone"},
		{"--prometheus U --query nothing --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z", false, "no series from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z"},
		{"--prometheus U --query down", false, "--query down: "},
		{"--prometheus " + dead.URL + " --query q", false, "connection refused"},
	}
	for _, tt := range tests {
		args := append([]string{"forecast", "--horizon", "2"}, strings.Fields(strings.ReplaceAll(tt.args, "U", p.URL))...)
		out, _, err := springtide(t, args...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || (usage.ExitCode(err) == usage.ExitUsage) != tt.usage || out != "" {
			t.Errorf("%s: %v (code %d), want %q", tt.args, err, usage.ExitCode(err), tt.want)
		}
	}
}
