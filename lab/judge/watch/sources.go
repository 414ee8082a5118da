package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/lab/judge"
)

// clock is the lab's clock, as any program may speak to it: who has nothing to do parks until a time, and the lab waits for all who are not parked.
type clock struct {
	url string // http://host:port?id=NAME
	now time.Time
}

// stride is the virtual time between two looks: that of the world's steps.
const stride = 15 * time.Second

// park waits for the next step. The first park of a clock that is not known yet ends at once.
func (c *clock) park(ctx context.Context) error {
	u, err := url.Parse(c.url)
	if err != nil {
		return fmt.Errorf("--clock: %w", err)
	}
	id := u.Query().Get("id")
	u.RawQuery, u.Path = "", "/v1/park"
	// It knows no anchors and wants none: what it has seen happened in the step in which it saw it.
	body, err := json.Marshal(map[string]any{"id": id, "until": c.now.Add(stride), "have": 1 << 30})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Now time.Time `json:"now"`
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("clock: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	c.now = answer.Now
	return nil
}

// get reads JSON.
func get(ctx context.Context, from string, limit time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	return json.Unmarshal(data, into)
}

const (
	// sourceQuery is the time of the newest sample of what services use: the recorded series that the documentation of Prometheus lists.
	sourceQuery = "max(timestamp(springtide:workload_cpu_usage_cores:sum))"
	// sourceLimit is how long (by the wall) an answer may take. The lab's clock waits for the judge too.
	sourceLimit = 2 * time.Second
	// sourceFresh is how old the newest sample may be.
	sourceFresh = 5 * time.Minute
)

// askSource asks Prometheus as an operator would: does it answer, and is what it has new?
func askSource(ctx context.Context, base string, now time.Time) (fine bool, says string) {
	var answer struct {
		Status string `json:"status"`
		Data   struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	query := url.Values{"query": {sourceQuery}, "time": {strconv.FormatInt(now.Unix(), 10)}}
	if err := get(ctx, strings.TrimSuffix(base, "/")+"/api/v1/query?"+query.Encode(), sourceLimit, &answer); err != nil {
		return false, err.Error()
	}
	if answer.Status != "success" || len(answer.Data.Result) == 0 {
		return false, "no answer to " + sourceQuery
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	stamp, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(stamp) {
		return false, "a sample's time of " + text
	}
	if age := now.Sub(time.Unix(int64(stamp), 0)); age > sourceFresh {
		return false, fmt.Sprintf("the newest sample is %s old", age)
	}
	return true, ""
}

// audit reads the API server's audit log, line by line, as it grows.
type audit struct {
	path string
	at   int64
}

// read takes over the lines that were added.
func (a *audit) read(take func(judge.Request)) error {
	if a.path == "" {
		return nil
	}
	f, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was asked for yet
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(a.at, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the line that is being written is read with the next step
		}
		a.at += int64(len(line))
		if r, ok := request(line); ok {
			take(r)
		}
	}
}

// request reads one line.
func request(line []byte) (judge.Request, bool) {
	var e struct {
		AuditID string `json:"auditID"`
		Verb    string `json:"verb"`
		User    struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
			Namespace   string `json:"namespace"`
			Name        string `json:"name"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"responseStatus"`
	}
	if json.Unmarshal(line, &e) != nil || e.ObjectRef.Resource == "" {
		return judge.Request{}, false
	}
	r := judge.Request{ID: e.AuditID, User: e.User.Username, Verb: e.Verb, Resource: e.ObjectRef.Resource, Code: e.ResponseStatus.Code, Text: e.ResponseStatus.Message}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	r.Ref = judge.Ref{Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
	return r, true
}

// renewed is a lease as it was seen.
type renewed struct {
	holder      string
	transitions int
	at          time.Time
}

// lease keeps when the lease was renewed last. Leases live by the wall.
type lease struct {
	last time.Time // when a new renewal was seen
	at   time.Time // the renewal itself
}

func (l *lease) seen(r renewed) {
	if !r.at.Equal(l.at) {
		l.at, l.last = r.at, time.Now()
	}
}

// excuse begins the wait for a renewal again: no component can renew a lease in a cluster that does not answer.
func (l *lease) excuse() {
	if !l.last.IsZero() {
		l.last = time.Now()
	}
}

// held reports whether a process renews it; none is missed before the first one came.
func (l *lease) held() bool { return l.last.IsZero() || time.Since(l.last) < leaderGone }
