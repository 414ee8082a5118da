package input

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/series"
)

// promInput are the flags of a range query.
type promInput struct {
	url, query, from, to, http string
}

const (
	// promStep is the grid where none is asked for, that of portraits; promSpan how far back a query reaches: four weeks show a week's
	// shape and what is normal about it.
	promStep = 5 * time.Minute
	promSpan = 28 * 24 * time.Hour
	// promPoints are asked for at once: Prometheus answers no query of more than 11,000 points a series.
	promPoints = 10_000
	// promTimeout bounds one query.
	promTimeout = 2 * time.Minute
)

func (o *promInput) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.url, "prometheus", "", "base URL of a Prometheus to read from instead of --in, as in http://prometheus:9090")
	f.StringVar(&o.query, "query", "", "PromQL expression whose series are read; their labels are the ids")
	f.StringVar(&o.from, "from", "", "begin of the query: RFC 3339, seconds since 1970, or a length of time before --to (28d); 28d when empty")
	f.StringVar(&o.to, "to", "", "end of the query: RFC 3339, seconds since 1970, or a length of time ago (1h); now when empty")
	f.StringVar(&o.http, "prometheus-http", "", "YAML file with TLS, token, basic auth or proxy, in the words of Prometheus' own HTTP client configuration")
}

// check refuses flags that do not go together.
func (o *promInput) check(cmd *cobra.Command) error {
	if o.url == "" {
		for _, flag := range []string{"query", "from", "to", "prometheus-http"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s needs --prometheus, the URL to read from", flag)
			}
		}
		return nil
	}
	if cmd.Flags().Changed("in") {
		return errors.New("--in and --prometheus: give one of them")
	}
	if o.query == "" {
		return errors.New("--prometheus needs --query, the expression to read")
	}
	if u, err := url.Parse(o.url); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("--prometheus %s: want a URL such as http://prometheus:9090", o.url)
	}
	return nil
}

// open asks the query and keeps its series, by their labels in order.
func (o *promInput) open(cmd *cobra.Command, step time.Duration) (*Source, error) {
	if step == 0 {
		step = promStep
	}
	if step < time.Second {
		return nil, usage.Error{Err: fmt.Errorf("--step %v: Prometheus is asked at whole seconds", step)}
	}
	to, err := moment("to", o.to, time.Now(), 0)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	from, err := moment("from", o.from, to, promSpan)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	if !from.Before(to) {
		return nil, usage.Error{Err: fmt.Errorf("--from %s is not before --to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))}
	}
	reader, err := o.api()
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	found, err := fetch(cmd.Context(), reader, o.query, from, to, step)
	if err != nil {
		err = fmt.Errorf("prometheus %s: --query %s: %w", o.url, o.query, err)
		var answer *apiv1.Error
		if errors.As(err, &answer) && answer.Type == apiv1.ErrBadData {
			return nil, usage.Error{Err: err}
		}
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("prometheus %s: --query %s: no series from %s to %s", o.url, o.query, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	each := func(yield func(plain.History, error) bool) {
		for _, h := range found {
			if !yield(h, nil) {
				return
			}
		}
	}
	return &Source{name: o.query, Total: len(found), Each: each, Close: func() error { return nil }}, nil
}

// moment reads a time, or a length of time before another; ago where nothing is given.
func moment(flag, text string, before time.Time, ago time.Duration) (time.Time, error) {
	if text == "" {
		return before.Add(-ago), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds > 0 && seconds < math.MaxInt32 {
		return time.Unix(seconds, 0), nil
	}
	ago, err := plain.ParseLength(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--%s %q is no time: write RFC 3339 (2026-01-01T00:00:00Z), seconds since 1970, or a length of time (28d)", flag, text)
	}
	return before.Add(-ago), nil
}

// api makes a client with the HTTP settings of the file, which are those of the controller's configuration.
func (o *promInput) api() (apiv1.API, error) {
	settings := config.DefaultHTTPClientConfig
	if o.http != "" {
		read, _, err := config.LoadHTTPConfigFile(o.http)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-http: %w", err)
		}
		settings = *read
	}
	rt, err := config.NewRoundTripperFromConfig(settings, "springtide-cli")
	if err != nil {
		return nil, fmt.Errorf("--prometheus-http: %w", err)
	}
	client, err := api.NewClient(api.Config{Address: o.url, Client: &http.Client{Transport: rt}})
	if err != nil {
		return nil, fmt.Errorf("--prometheus %s: %w", o.url, err)
	}
	return apiv1.NewAPI(client), nil
}

// fetch asks for the range in parts that Prometheus answers, and puts the parts of each series together. The sample at a time stands for
// the step that begins there. A warning means that a part is missing, which would read as a fall of the load, and counts as an error, unless
// it is about the expression ("PromQL ...").
func fetch(ctx context.Context, reader apiv1.API, query string, from, to time.Time, step time.Duration) ([]plain.History, error) {
	first, last := series.GridIndex(from.Add(step-1), step), series.GridIndex(to, step)
	found := map[string]series.Series{}
	for begin := first; begin <= last; begin += promPoints {
		end := min(begin+promPoints-1, last)
		r := apiv1.Range{Start: series.GridTime(begin, step), End: series.GridTime(end, step), Step: step}
		part, cancel := context.WithTimeout(ctx, promTimeout)
		value, warnings, _, err := reader.QueryRange(part, query, r)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, w := range warnings {
			if !strings.HasPrefix(w, "PromQL ") {
				return nil, fmt.Errorf("partial answer: %s", w)
			}
		}
		matrix, ok := value.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("the answer is a %s, want a matrix", value.Type())
		}
		for _, stream := range matrix {
			id := stream.Metric.String()
			s, ok := found[id]
			if !ok {
				s = series.New(series.GridTime(first, step), step, int(last-first+1))
				found[id] = s
			}
			for _, p := range stream.Values {
				if i := s.Index(p.Timestamp.Time()); i >= 0 && i < s.Len() && !math.IsInf(float64(p.Value), 0) {
					s.Values[i] = float64(p.Value)
				}
			}
		}
	}
	var out []plain.History
	for _, id := range slices.Sorted(maps.Keys(found)) {
		s := found[id]
		for s.Len() > 0 && math.IsNaN(s.Values[0]) { // before it began
			s = s.Since(s.Time(1))
		}
		out = append(out, plain.History{ID: id, Series: s})
	}
	return out, nil
}
