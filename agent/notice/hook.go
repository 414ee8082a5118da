package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Notice is a checkpoint notice as the controller writes it on a pod.
type Notice struct {
	Loan     string    `json:"loan"`
	Epoch    int64     `json:"epoch"`
	Deadline time.Time `json:"deadline"`
}

// Parse reads the annotation.
func Parse(text string) (Notice, error) {
	var n Notice
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return n, fmt.Errorf("read the notice: %w", err)
	}
	if n.Loan == "" || n.Epoch <= 0 {
		return n, errors.New("read the notice: it names no loan and epoch")
	}
	return n, nil
}

// AnnotationHook on a pod names its hook: {"http":{"port":8080,"path":"/checkpoint"}}, or {"exec":["/bin/save"],"container":"main"}.
const AnnotationHook = "springtide.dev/checkpoint-hook"

// Hook is what is called when a notice arrives.
type Hook struct {
	HTTP *HTTPHook `json:"http,omitempty"`
	Exec []string  `json:"exec,omitempty"`
	// Container runs the command; the pod's only container when empty.
	Container string `json:"container,omitempty"`
}

// HTTPHook is a POST of the notice to the pod itself.
type HTTPHook struct {
	Port int32  `json:"port"`
	Path string `json:"path"`
}

// ParseHook reads the annotation and judges it: exactly one of http and exec, and a port that the pod declares.
func ParseHook(text string, declared []int32) (Hook, error) {
	var h Hook
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, fmt.Errorf("annotation %s: %w", AnnotationHook, err)
	}
	switch {
	case (h.HTTP != nil) == (len(h.Exec) > 0):
		return h, fmt.Errorf("annotation %s: write one of http and exec", AnnotationHook)
	case h.HTTP == nil:
		return h, nil
	case !slices.Contains(declared, h.HTTP.Port):
		return h, fmt.Errorf("annotation %s: port %d is no containerPort of the pod; to fix: declare it", AnnotationHook, h.HTTP.Port)
	case !strings.HasPrefix(h.HTTP.Path, "/"):
		return h, fmt.Errorf("annotation %s: path %q must begin with /", AnnotationHook, h.HTTP.Path)
	}
	return h, nil
}

// hookTimeout bounds a hook: it starts a checkpoint and need not wait for it.
const hookTimeout = 5 * time.Second

// Exec runs a command in a container and returns when it has ended.
type Exec func(ctx context.Context, container string, command []string) error

// Pod is the pod that a hook is called in.
type Pod struct {
	// IP is the pod's own; empty for a pod on the host's network, which has none.
	IP string
	// Containers are the runtime's ids of containers, by name.
	Containers map[string]string
}

// Call calls the hook once. HTTP goes to the pod's own address alone: redirects are not followed, and no proxy is asked.
func (h *Hook) Call(ctx context.Context, p Pod, text string, run Exec) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	if h.HTTP != nil {
		return h.post(ctx, p, text)
	}
	if run == nil {
		return errors.New("the hook is a command, and criSocket is not set; to fix: set it, or use http")
	}
	id := ""
	for name, c := range p.Containers {
		if name == h.Container || h.Container == "" && len(p.Containers) == 1 {
			id = c
		}
	}
	if id == "" {
		return fmt.Errorf("the hook's container %q does not run", h.Container)
	}
	return run(ctx, id, h.Exec)
}

func (h *Hook) post(ctx context.Context, p Pod, text string) error {
	if net.ParseIP(p.IP) == nil {
		return errors.New("the pod has no address of its own: an http hook is not for the host's network")
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	path, err := url.Parse(h.HTTP.Path)
	if err != nil || path.Host != "" || path.Scheme != "" {
		return fmt.Errorf("the hook's path %q is no path", h.HTTP.Path)
	}
	to := url.URL{Scheme: "http", Host: net.JoinHostPort(p.IP, strconv.Itoa(int(h.HTTP.Port))), Path: path.Path, RawQuery: path.RawQuery}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader([]byte(text)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the pod answered %s", resp.Status)
	}
	return nil
}
