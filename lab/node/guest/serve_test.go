package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ask sends one request to the harness' end and returns the answer's status and body.
func ask(t *testing.T, server *httptest.Server, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func TestServe(t *testing.T) {
	server := httptest.NewServer(handler())
	defer server.Close()

	t.Run("a script's output and exit code come back", func(t *testing.T) {
		code, body := ask(t, server, "POST", "/run", "echo out; echo err >&2; exit 3")
		if code != 200 || !strings.Contains(body, `"code":3`) || !strings.Contains(body, `"out":"out\nerr\n"`) {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("a file is written with its mode and read again", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new", "file")
		if code, body := ask(t, server, "PUT", "/file?mode=750&path="+url.QueryEscape(path), "text"); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o750 {
			t.Errorf("%v %v, want mode 750", info, err)
		}
		if code, body := ask(t, server, "GET", "/file?path="+url.QueryEscape(path), ""); code != 200 || body != "text" {
			t.Errorf("%d %s", code, body)
		}
		if code, _ := ask(t, server, "PUT", "/file?path="+url.QueryEscape(path), "text"); code != 500 {
			t.Errorf("a file without a mode is answered with %d", code)
		}
	})
	t.Run("a file of the kernel without a size is read", func(t *testing.T) {
		if code, body := ask(t, server, "GET", "/file?path=/proc/self/comm", ""); code != 200 || body == "" {
			t.Errorf("%d %q", code, body)
		}
	})
	t.Run("the clock is read", func(t *testing.T) {
		before := time.Now()
		_, body := ask(t, server, "GET", "/clock", "")
		ns, err := strconv.ParseInt(body, 10, 64)
		if at := time.Unix(0, ns); err != nil || at.Before(before.Round(0)) || at.After(time.Now().Round(0)) {
			t.Errorf("%s, %v", body, err)
		}
	})
	t.Run("an address is served from where it was last forwarded to", func(t *testing.T) {
		first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "first") }))
		defer first.Close()
		second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "second") }))
		defer second.Close()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		from := l.Addr().String()
		_ = l.Close()
		for _, far := range []struct {
			want   string
			server *httptest.Server
		}{{"first", first}, {"second", second}} {
			if code, body := ask(t, server, "PUT", "/forward?from="+from+"&to="+far.server.Listener.Addr().String(), ""); code != 200 {
				t.Fatalf("%d %s", code, body)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Get("http://" + from + "/")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || string(body) != far.want {
				t.Errorf("%q, %v, want %q", body, err, far.want)
			}
		}
	})
}
