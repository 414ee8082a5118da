package prom

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve offers the HTTP API on a TCP address (host:0 takes a free port) and returns its base URL.
func (p *Prom) Serve(addr string) (string, error) {
	p.serveMu.Lock()
	defer p.serveMu.Unlock()
	if p.server != nil {
		return "", fmt.Errorf("already serving on %s", p.address)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("serve the query API: %w", err)
	}
	p.address = listener.Addr().String()
	server := &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second}
	p.server = server
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the query API ended", "err", err)
		}
	}()
	return "http://" + p.address, nil
}

// StopServing plays an outage: connections are refused and running queries cut off, while the database stays open and takes
// samples. Stopping a stopped server does nothing.
func (p *Prom) StopServing() error {
	p.serveMu.Lock()
	defer p.serveMu.Unlock()
	if p.server == nil {
		return nil
	}
	server := p.server
	p.server = nil
	return server.Close()
}

// ServeAgain ends an outage, on the same address.
func (p *Prom) ServeAgain() error {
	p.serveMu.Lock()
	addr := p.address
	p.serveMu.Unlock()
	if addr == "" {
		return errors.New("serve again: never served before")
	}
	_, err := p.Serve(addr)
	return err
}

// withNow puts the lab's time where a query states none; the API itself would take the wall clock, at which there is no data. Answers go out
// uncompressed: they do not leave the machine.
func (p *Prom) withNow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		// The API reads r.Form, which is parsed only once: what is set here is what it finds.
		if err := r.ParseForm(); err == nil && !r.Form.Has("time") {
			r.Form.Set("time", p.now().UTC().Format(time.RFC3339Nano))
		}
		next.ServeHTTP(w, r)
	})
}
