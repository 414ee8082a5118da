// Package readapi answers what only the controller's store knows: the journal about an object, and forecasts. In comes a request with the
// user's own token; out goes JSON, where the API server says that this user may read the object that is asked about. Nothing is changed.
//
// The command line is its client ([Client]).
package readapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/serve/review"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store"
)

// Prefix is below which the handler is served.
const Prefix = "/api/v1/"

// mostLines bounds an answer from the journal.
const mostLines = 1000

// Store is what is read.
type Store interface {
	About(ctx context.Context, kind, name string, n int) ([]store.Event, error)
	LastCycle(ctx context.Context) (time.Time, error)
	TidesOf(ctx context.Context, service fleet.ServiceID, n int) ([]forecast.Tide, error)
	LoadPortraits(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, error)
}

// Handler answers requests.
type Handler struct {
	Store    Store
	Reviewer *review.Reviewer
	// Leads reports whether this process leads: the store of another one knows less.
	Leads func() bool
	mux   *http.ServeMux
}

// New makes a handler.
func New(s Store, r *review.Reviewer, leads func() bool) *Handler {
	h := &Handler{Store: s, Reviewer: r, Leads: leads, mux: http.NewServeMux()}
	h.mux.HandleFunc("GET "+Prefix+"journal", h.journal)
	h.mux.HandleFunc("GET "+Prefix+"forecast", h.forecast)
	h.mux.HandleFunc("GET "+Prefix+"learned", h.learned)
	h.mux.HandleFunc("GET "+Prefix+"status", h.status)
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Status is what the controller says of itself.
type Status struct {
	Leads     bool      `json:"leads"`
	LastCycle time.Time `json:"lastCycle,omitzero"`
}

// Forecast is the newest tide of a service. Values are those of its signal; a value that is not known is null.
type Forecast struct {
	Service   string       `json:"service"`
	Signal    string       `json:"signal"`
	Made      time.Time    `json:"made"`
	Start     time.Time    `json:"start"`
	Step      string       `json:"step"`
	Model     string       `json:"model"`
	Trusted   bool         `json:"trusted"`
	Note      string       `json:"note,omitempty"`
	Quantiles []float64    `json:"quantiles"`
	Paths     [][]*float64 `json:"paths"`
}

// Learned is what the store knows of all services, in its own forms.
type Learned struct {
	Portraits map[fleet.ServiceID][]byte `json:"portraits"`
	Tides     map[fleet.ServiceID][]byte `json:"tides"`
}

// resources are what a user must be allowed to get, by the journal's kinds.
var resources = map[string]string{store.KindService: "elasticservices", store.KindJob: "elasticjobs", store.KindLoan: "loans", store.KindNode: "nodes"}

// may reports whether its user may make a request, and answers one that it must not make.
func (h *Handler) may(w http.ResponseWriter, r *http.Request, what authorizationv1.ResourceAttributes) bool {
	user, err := h.Reviewer.User(r.Context(), r)
	if errors.Is(err, review.ErrNoUser) {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return false
	}
	if err == nil {
		var ok bool
		if ok, err = h.Reviewer.Allowed(r.Context(), user, &what); err == nil && !ok {
			object := what.Resource
			if what.Name != "" {
				object += " " + fleet.Name{Namespace: what.Namespace, Name: what.Name}.String()
			}
			http.Error(w, user.Username+" must not "+what.Verb+" "+object+": ask for that right", http.StatusForbidden)
			return false
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return false
	}
	if !h.Leads() {
		http.Error(w, "this controller stands by: ask the one that holds the Lease", http.StatusMisdirectedRequest)
		return false
	}
	return true
}

func own(verb, resource string, n fleet.Name) authorizationv1.ResourceAttributes {
	a := authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: resource, Namespace: n.Namespace, Name: n.Name}
	if resource == "nodes" {
		a.Group, a.Version = "", "v1"
	}
	return a
}

func (h *Handler) journal(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind, name := q.Get("kind"), fleet.ParseName(q.Get("name"))
	resource, ok := resources[kind]
	limit, err := strconv.Atoi(q.Get("limit"))
	if !ok || name.Name == "" || err != nil || limit < 1 || limit > mostLines {
		http.Error(w, "want kind, name and limit, as in ?kind="+store.KindService+"&name=shop/cart&limit=15", http.StatusBadRequest)
		return
	}
	if !h.may(w, r, own("get", resource, name)) {
		return
	}
	lines, err := h.Store.About(r.Context(), kind, name.String(), limit)
	if lines == nil {
		lines = []store.Event{}
	}
	answer(w, lines, err)
}

func (h *Handler) forecast(w http.ResponseWriter, r *http.Request) {
	name := fleet.ParseName(r.URL.Query().Get("service"))
	if name.Namespace == "" || name.Name == "" {
		http.Error(w, "want service, as in ?service=shop/cart", http.StatusBadRequest)
		return
	}
	if !h.may(w, r, own("get", "elasticservices", name)) {
		return
	}
	tides, err := h.Store.TidesOf(r.Context(), fleet.ServiceID(name.String()), 1)
	if err == nil && len(tides) == 0 {
		http.Error(w, "no forecast of ElasticService "+name.String()+" yet: it comes with the first cycle that reads its history", http.StatusNotFound)
		return
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, Render(&tides[0]), nil)
}

// Render is a tide as programs read it.
func Render(t *forecast.Tide) *Forecast {
	f := &Forecast{Service: string(t.Service), Signal: string(t.Signal), Made: t.Made, Start: t.Start, Step: t.Step.String(), Model: t.Model, Trusted: t.Trusted,
		Note: t.Note, Quantiles: t.Quantiles, Paths: make([][]*float64, len(t.Paths))}
	for i, path := range t.Paths {
		f.Paths[i] = make([]*float64, len(path))
		for j, v := range path {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				f.Paths[i][j] = &v
			}
		}
	}
	return f
}

// learned answers with portraits and newest tides of all services, for a check of festival plans.
func (h *Handler) learned(w http.ResponseWriter, r *http.Request) {
	if !h.may(w, r, own("list", "elasticservices", fleet.Name{})) {
		return
	}
	portraits, err := h.Store.LoadPortraits(r.Context())
	if err != nil {
		answer(w, nil, err)
		return
	}
	out := Learned{Portraits: map[fleet.ServiceID][]byte{}, Tides: map[fleet.ServiceID][]byte{}}
	for id := range portraits {
		if out.Portraits[id], err = portrait.Marshal(portraits[id]); err != nil {
			answer(w, nil, err)
			return
		}
		tides, err := h.Store.TidesOf(r.Context(), id, 1)
		if err != nil {
			answer(w, nil, err)
			return
		}
		if len(tides) > 0 {
			if out.Tides[id], err = store.PackTide(&tides[0]); err != nil {
				answer(w, nil, err)
				return
			}
		}
	}
	answer(w, out, nil)
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request) {
	if !h.may(w, r, own("list", "loans", fleet.Name{})) {
		return
	}
	at, err := h.Store.LastCycle(r.Context())
	answer(w, Status{Leads: h.Leads(), LastCycle: at}, err)
}

// answer writes JSON, or that the store failed, whose error names addresses that are not the caller's business.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, "the controller's store does not answer: its log and condition StoreReady say why", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
