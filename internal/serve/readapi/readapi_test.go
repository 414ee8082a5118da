package readapi

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/serve/review"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store"
)

var made = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// memory is a store with one service and one machine.
type memory struct{}

func (memory) About(_ context.Context, kind, name string, _ int) ([]store.Event, error) {
	return []store.Event{{At: made, Revision: 7, Kind: kind, Name: name, Action: "Size 31"}}, nil
}
func (memory) LastCycle(context.Context) (time.Time, error) { return made, nil }
func (memory) TidesOf(_ context.Context, id fleet.ServiceID, _ int) ([]forecast.Tide, error) {
	if id != "shop/cart" {
		return nil, nil
	}
	return []forecast.Tide{{Service: id, Made: made, Start: made, Step: 5 * time.Minute, Model: "seasonal", Quantiles: []float64{0.5}, Paths: [][]float64{{1, math.NaN(), 3}}}}, nil
}
func (memory) LoadPortraits(context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return map[fleet.ServiceID]portrait.Portrait{"shop/cart": {Service: "shop/cart"}}, nil
}

// server answers for a cluster in which the token "ann" may read the namespace shop, and "root" everything.
func server(t *testing.T, leads *bool) *httptest.Server {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		r.Status.Authenticated = r.Spec.Token == "ann" || r.Spec.Token == "root"
		r.Status.User = authenticationv1.UserInfo{Username: r.Spec.Token, Groups: []string{"people"}}
		return true, r, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		what := r.Spec.ResourceAttributes
		r.Status.Allowed = len(r.Spec.Groups) == 1 && (r.Spec.User == "root" || what.Namespace == "shop" && what.Verb == "get" && what.Group == "springtide.dev")
		return true, r, nil
	})
	s := httptest.NewServer(New(memory{}, &review.Reviewer{Client: client}, func() bool { return *leads }))
	t.Cleanup(s.Close)
	return s
}

// asUser sends a token with each request.
type asUser struct{ token, header string }

func (u asUser) RoundTrip(q *http.Request) (*http.Response, error) {
	if u.token != "" {
		q.Header.Set("Authorization", "Bearer "+u.token)
	}
	if u.header != "" {
		q.Header.Set(u.header, "root")
	}
	return http.DefaultTransport.RoundTrip(q)
}

func TestWhoMayReadWhat(t *testing.T) {
	leads := true
	s := server(t, &leads)
	client := func(token, header string) *Client {
		return &Client{HTTP: &http.Client{Transport: asUser{token, header}}, Base: s.URL}
	}
	about := func(c *Client, kind, name string) error { _, err := c.About(t.Context(), kind, name, 5); return err }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a tenant of its own service", about(client("ann", ""), store.KindService, "shop/cart"), ""},
		{"a tenant of another one", about(client("ann", ""), store.KindService, "bank/pay"), "ann must not get elasticservices bank/pay"},
		{"a tenant of a machine", about(client("ann", ""), store.KindNode, "node-1"), "ann must not get nodes node-1"},
		{"an operator of a machine", about(client("root", ""), store.KindNode, "node-1"), ""},
		{"a token that is none", about(client("eve", ""), store.KindService, "shop/cart"), "no bearer token"},
		{"no token", about(client("", ""), store.KindService, "shop/cart"), "no bearer token"},
		{"a tenant in another's name", about(client("ann", "Impersonate-User"), store.KindNode, "node-1"), "impersonation"},
		{"a kind that is none", about(client("root", ""), "secrets", "x"), "want kind"},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("%s: %v", c.name, c.err)
		case c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
	leads = false
	if err := about(client("root", ""), store.KindService, "shop/cart"); err == nil || !strings.Contains(err.Error(), "stands by") {
		t.Errorf("a standby answers: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	leads := true
	s := server(t, &leads)
	c := &Client{HTTP: &http.Client{Transport: asUser{token: "root"}}, Base: s.URL}
	lines, err := c.About(t.Context(), store.KindService, "shop/cart", 5)
	if err != nil || len(lines) != 1 || lines[0].Action != "Size 31" || lines[0].Revision != 7 || !lines[0].At.Equal(made) {
		t.Errorf("journal %+v, %v", lines, err)
	}
	f, err := c.Forecast(t.Context(), "shop/cart")
	if err != nil || f.Model != "seasonal" || f.Paths[0][1] != nil || *f.Paths[0][2] != 3 || f.Step != "5m0s" {
		t.Errorf("forecast %+v, %v", f, err)
	}
	if _, err := c.Forecast(t.Context(), "shop/new"); err == nil || !strings.Contains(err.Error(), "no forecast of ElasticService shop/new yet") {
		t.Errorf("of a service without one: %v", err)
	}
	if at, err := c.LastCycle(t.Context()); err != nil || !at.Equal(made) {
		t.Errorf("last cycle %s, %v", at, err)
	}
	portraits, err := c.LoadPortraits(t.Context())
	if err != nil || portraits["shop/cart"].Service != "shop/cart" {
		t.Errorf("portraits %v, %v", portraits, err)
	}
	tides, err := c.TidesOf(t.Context(), "shop/cart", 1)
	if err != nil || len(tides) != 1 || tides[0].Model != "seasonal" || !math.IsNaN(tides[0].Paths[0][1]) {
		t.Errorf("tides %+v, %v", tides, err)
	}
}
