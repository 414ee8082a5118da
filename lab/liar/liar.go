// Package liar stands before Prometheus and lies: it passes queries on and changes what comes back, as a source does
// whose scrapes, rules or network are broken. The product can distinguish it from Prometheus only by its answers.
package liar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Lie is what is done to the answers.
type Lie string

// The lies.
const (
	None       Lie = ""
	Hundredth  Lie = "x0.01"   // loads are a hundredth of what they are
	Hundred    Lie = "x100"    // loads are a hundred times what they are
	Empty      Lie = "empty"   // no series, no error
	NotANumber Lie = "NaN"     // each sample is NaN
	Doubled    Lie = "doubled" // each series comes twice, under another label
	Old        Lie = "old"     // the answer of an hour ago
	Slow       Lie = "slow"    // each answer takes two seconds
	Away       Lie = "away"    // 503
	Page       Lie = "page"    // a login page, with status 200
)

// All are all lies, in the order in which they are played in a row.
func All() []Lie { return []Lie{Hundredth, Hundred, Empty, NotANumber, Doubled, Old, Slow, Away, Page} }

const (
	// age is how old the old answer is.
	age = time.Hour
	// delay is what a slow answer takes, by the wall: long for a query, and short of the limits of those who ask, so that a cycle adds up.
	delay = 2 * time.Second
)

// Liar is a proxy before Prometheus.
type Liar struct {
	target *url.URL
	server *http.Server
	url    string

	mu  sync.Mutex
	lie Lie
}

// Listen stands before the Prometheus at a URL, and passes on the truth at first.
func Listen(target string) (*Liar, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("liar: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("liar: %w", err)
	}
	l := &Liar{target: u, url: "http://" + listener.Addr().String()}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.server.Serve(listener) }() // ends at Close
	return l, nil
}

// URL is where it serves.
func (l *Liar) URL() string { return l.url }

// Close ends it.
func (l *Liar) Close() error { return l.server.Close() }

// Set changes the lie.
func (l *Liar) Set(lie Lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie = lie
}

// ServeHTTP answers one query.
func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	lie := l.lie
	l.mu.Unlock()
	switch lie {
	case Away:
		http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
		return
	case Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in to continue</body></html>"))
		return
	case Slow:
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form := r.Form
	if lie == Old {
		for _, name := range []string{"time", "start", "end"} {
			earlier(form, name)
		}
	}
	body, status, err := l.ask(r, form)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if status == http.StatusOK {
		body = Distort(lie, form.Get("query"), body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a reader that went away needs no answer
}

// ask passes a query on, always in the body: a query may be longer than a URL.
func (l *Liar) ask(r *http.Request, form url.Values) ([]byte, int, error) {
	to := *l.target
	to.Path = strings.TrimSuffix(to.Path, "/") + r.URL.Path
	method, body := r.Method, ""
	if method == http.MethodGet {
		to.RawQuery = form.Encode()
	} else {
		body = form.Encode()
	}
	request, err := http.NewRequestWithContext(r.Context(), method, to.String(), strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return data, response.StatusCode, err
}

// earlier moves a time of a query back by age.
func earlier(form url.Values, name string) {
	text := form.Get(name)
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		form.Set(name, strconv.FormatFloat(v-age.Seconds(), 'f', 3, 64))
	} else if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		form.Set(name, t.Add(-age).Format(time.RFC3339Nano))
	}
}

// answer is Prometheus' answer to a query.
type answer struct {
	Status string `json:"status"`
	Data   struct {
		ResultType string   `json:"resultType"`
		Result     []series `json:"result"`
	} `json:"data"`
}

type series struct {
	Metric map[string]string `json:"metric"`
	Value  *[2]any           `json:"value,omitempty"`
	Values [][2]any          `json:"values,omitempty"`
}

// Distort turns an answer into a lie. An answer that it cannot read, or does not lie about, stays as it is.
func Distort(lie Lie, query string, body []byte) []byte {
	var a answer
	if lie == None || lie == Old || lie == Slow || json.Unmarshal(body, &a) != nil || a.Data.ResultType != "vector" && a.Data.ResultType != "matrix" {
		return body
	}
	switch lie {
	case Empty:
		a.Data.Result = []series{}
	case NotANumber:
		a.change(func(string) string { return "NaN" })
	case Doubled:
		for _, s := range a.Data.Result {
			twin := s
			twin.Metric = map[string]string{"replica": "b"}
			for k, v := range s.Metric {
				twin.Metric[k] = v
			}
			a.Data.Result = append(a.Data.Result, twin)
		}
	case Hundredth, Hundred:
		// States and counts of Kubernetes come from elsewhere, and a time is no load.
		if strings.Contains(query, "kube_") || strings.Contains(query, "timestamp(") {
			return body
		}
		factor := .01
		if lie == Hundred {
			factor = 100
		}
		a.change(func(text string) string {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return text
			}
			return strconv.FormatFloat(v*factor, 'g', -1, 64)
		})
	}
	var out bytes.Buffer
	if json.NewEncoder(&out).Encode(&a) != nil {
		return body
	}
	return out.Bytes()
}

// change changes each sample.
func (a *answer) change(f func(string) string) {
	one := func(sample *[2]any) {
		if text, ok := sample[1].(string); ok {
			sample[1] = f(text)
		}
	}
	for i := range a.Data.Result {
		if v := a.Data.Result[i].Value; v != nil {
			one(v)
		}
		for k := range a.Data.Result[i].Values {
			one(&a.Data.Result[i].Values[k])
		}
	}
}
