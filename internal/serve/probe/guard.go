package probe

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/springtide/springtide/internal/serve/review"
)

const (
	// allowedFor is how long an answer of the API server holds: a scrape every 15 s of each machine's agent asks once a minute.
	allowedFor = time.Minute
	// mostCallers bounds the memory of answers; few components scrape.
	mostCallers = 64
	// metricsPath is what a caller must be allowed to get, for profiles as well.
	metricsPath = "/metrics"
)

// guard lets requests pass whose token the API server knows and whose user may get /metrics. Refusals are asked about each time: they are rare,
// and a right that was granted just now works at once.
type guard struct {
	next     http.Handler
	reviewer *review.Reviewer
	now      func() time.Time

	mu      sync.Mutex // guards allowed
	allowed map[[sha256.Size]byte]time.Time
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	if !g.known(key) {
		user, err := g.reviewer.User(r.Context(), r)
		if errors.Is(err, review.ErrNoUser) {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		ok := false
		if err == nil {
			ok, err = g.reviewer.MayGet(r.Context(), user, metricsPath)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if !ok {
			http.Error(w, user.Username+" must not get "+metricsPath+": bind it to the ClusterRole springtide-metrics-reader", http.StatusForbidden)
			return
		}
		g.remember(key)
	}
	g.next.ServeHTTP(w, r)
}

func (g *guard) known(key [sha256.Size]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now().Before(g.allowed[key])
}

func (g *guard) remember(key [sha256.Size]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allowed == nil || len(g.allowed) >= mostCallers {
		g.allowed = map[[sha256.Size]byte]time.Time{}
	}
	g.allowed[key] = g.now().Add(allowedFor)
}
