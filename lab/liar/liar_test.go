package liar

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const load = "sum(springtide:workload_cpu_usage_cores:sum)"

// prometheus answers with one sample, whose value is the time that was asked for.
func prometheus(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"workload":"web"},"value":[%s,"%s"]}]}}`, r.Form.Get("time"), r.Form.Get("time"))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestLies(t *testing.T) {
	l, err := Listen(prometheus(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		lie   Lie
		query string
		want  string
		code  int
	}{
		{None, load, `[7200,"7200"]`, 200},
		{Hundredth, load, `[7200,"72"]`, 200},
		{Hundredth, "count(kube_pod_status_ready)", `[7200,"7200"]`, 200},
		{Hundred, load, `[7200,"720000"]`, 200},
		{Hundred, "max(timestamp(up))", `[7200,"7200"]`, 200},
		{Empty, load, `"result":[]`, 200},
		{NotANumber, load, `[7200,"NaN"]`, 200},
		{Doubled, load, `{"metric":{"replica":"b","workload":"web"},"value":[7200,"7200"]}`, 200},
		{Old, load, `[3600.000,"3600.000"]`, 200},
		{Away, load, "upstream", 503},
		{Page, load, "<html>", 200},
	} {
		l.Set(c.lie)
		for _, ask := range []func() (*http.Response, error){
			func() (*http.Response, error) {
				return http.Get(l.URL() + "/api/v1/query?" + url.Values{"query": {c.query}, "time": {"7200"}}.Encode())
			},
			func() (*http.Response, error) {
				return http.PostForm(l.URL()+"/api/v1/query", url.Values{"query": {c.query}, "time": {"7200"}})
			},
		} {
			r, err := ask()
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != c.code || !strings.Contains(string(body), c.want) {
				t.Errorf("%s of %s: %d %s %v, want %d with %s", c.lie, c.query, r.StatusCode, body, err, c.code, c.want)
			}
		}
	}
}

func TestALieAboutARange(t *testing.T) {
	body := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"],[2,"3"]]}]}}`
	if got := string(Distort(Hundred, load, []byte(body))); !strings.Contains(got, `[[1,"200"],[2,"300"]]`) {
		t.Error(got)
	}
	if got := string(Distort(Hundred, load, []byte("<html>"))); got != "<html>" {
		t.Error(got)
	}
}
