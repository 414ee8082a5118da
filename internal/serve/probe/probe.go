// Package probe serves the metrics, probes and profiles of a process: a registry and two questions come in, a running server goes out. The
// controller, the scheduler and the node agent answer with it, so that the same path means the same in all of them.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/internal/serve/certs"
	"github.com/springtide/springtide/internal/serve/review"
)

// Options say what a process serves.
type Options struct {
	// Listen is the plain address: probes for the kubelet, and metrics where Secure has no address.
	Listen       string
	Gatherer     prometheus.Gatherer
	Alive, Ready Question
	// Profiles serves /debug/pprof where the metrics are.
	Profiles bool
	// More are further handlers of the plain address, by path.
	More   map[string]http.Handler
	Secure Secure
	Log    *slog.Logger
}

// Secure is the address at which metrics are served by TLS to callers that the API server knows and lets get /metrics.
type Secure struct {
	// Listen is the address; empty leaves metrics on the plain address.
	Listen string
	// CertDir holds tls.crt and tls.key; a certificate that signs itself is made in memory when it is empty.
	CertDir string
	// Client asks the API server about callers.
	Client kubernetes.Interface
}

// Question reports why the answer to a probe is no, or nil.
type Question func(ctx context.Context) error

// ServeHTTP implements http.Handler.
func (q Question) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := q(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Plain is what the plain address answers.
func (o *Options) Plain() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/healthz", o.Alive)
	mux.Handle("/readyz", o.Ready)
	if o.Secure.Listen == "" {
		o.metrics(mux)
	}
	for path, h := range o.More {
		mux.Handle(path, h)
	}
	return mux
}

func (o *Options) metrics(mux *http.ServeMux) {
	mux.Handle("/metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{}))
	if o.Profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
}

// Server is what runs.
type Server struct{ servers []*http.Server }

// Close ends it.
func (s *Server) Close() error {
	var errs []error
	for _, one := range s.servers {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// Serve serves both addresses until the server is closed.
func Serve(o *Options) (*Server, error) {
	out := &Server{}
	if err := out.listen("--listen", o.Listen, o.Plain(), nil, o.Log); err != nil {
		return nil, err
	}
	if o.Secure.Listen == "" {
		return out, nil
	}
	mux := http.NewServeMux()
	o.metrics(mux)
	certificate := certs.InMemory("springtide-metrics", time.Now)
	if o.Secure.CertDir != "" {
		certificate = certs.FromDir(o.Secure.CertDir)
		if _, err := certificate(nil); err != nil {
			return nil, errors.Join(fmt.Errorf("--metrics-cert-dir: %w", err), out.Close())
		}
	}
	guard := &guard{next: mux, reviewer: &review.Reviewer{Client: o.Secure.Client}, now: time.Now}
	if err := out.listen("--metrics-listen", o.Secure.Listen, guard, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate}, o.Log); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func (s *Server) listen(flag, addr string, h http.Handler, secure *tls.Config, log *slog.Logger) error {
	one, err := Listen(flag, addr, "metrics and health", h, secure, log)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, one)
	return nil
}

// Listen serves a handler at an address until the server is closed, by TLS where secure is set. It listens at once, so that an address in use is an
// error at start and not a line in a log. Setting is the option that holds the address, and what is served there is named in the log.
func Listen(setting, addr, what string, h http.Handler, secure *tls.Config, log *slog.Logger) (*http.Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", setting, addr, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, TLSConfig: secure, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		serve := func() error { return s.Serve(ln) }
		if secure != nil {
			serve = func() error { return s.ServeTLS(ln, "", "") }
		}
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error(what+" are no longer served", "address", addr, "err", err)
		}
	}()
	return s, nil
}
