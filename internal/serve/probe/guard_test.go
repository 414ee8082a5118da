package probe

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/internal/serve/review"
)

// TestGuard: an answer of the API server holds for a minute and no longer, so a right that was taken away ends; a refusal is not kept.
func TestGuard(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	granted, asked := false, 0
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		r.Status.Authenticated, r.Status.User.Username = r.Spec.Token == "prometheus", r.Spec.Token
		return true, r, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		n := r.Spec.NonResourceAttributes
		r.Status.Allowed = granted && n != nil && n.Verb == "get" && n.Path == "/metrics" && r.Spec.User == "prometheus"
		return true, r, nil
	})
	g := &guard{next: http.NotFoundHandler(), reviewer: &review.Reviewer{Client: client}, now: func() time.Time { return now }}
	is := func(when, token string, want, wantAsked int) {
		t.Helper()
		asked = 0
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		q.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, q)
		if w.Code != want || asked != wantAsked {
			t.Errorf("%s: %d and %d questions, want %d and %d: %s", when, w.Code, asked, want, wantAsked, w.Body)
		}
	}
	const passed = http.StatusNotFound // what the next handler answers
	is("without the right", "prometheus", http.StatusForbidden, 1)
	granted = true
	is("just granted", "prometheus", passed, 1)
	is("again", "prometheus", passed, 0)
	is("another caller", "mallory", http.StatusUnauthorized, 1)
	granted = false
	now = now.Add(allowedFor - time.Second)
	is("taken away, within the minute", "prometheus", passed, 0)
	now = now.Add(time.Second)
	is("taken away, after the minute", "prometheus", http.StatusForbidden, 1)
}

// TestSecureNeedsItsCertificate: a directory without a certificate is an error at start, not at the first scrape.
func TestSecureNeedsItsCertificate(t *testing.T) {
	o := &Options{Listen: "127.0.0.1:0", Gatherer: prometheus.NewRegistry(), Secure: Secure{Listen: "127.0.0.1:0", CertDir: t.TempDir()}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if s, err := Serve(o); err == nil {
		t.Errorf("it serves: %v", s.Close())
	}
	o.Secure.CertDir = ""
	s, err := Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
