package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/serve/readapi"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store"
)

// Memory is what the controller remembers: its store, opened here or asked for through the read API.
type Memory interface {
	About(ctx context.Context, kind, name string, n int) ([]store.Event, error)
	TidesOf(ctx context.Context, service fleet.ServiceID, n int) ([]forecast.Tide, error)
	LoadPortraits(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, error)
}

// These are of the controller's manifests.
const (
	servingObject   = "springtide-serving"
	servingPort     = "8443"
	controllerLease = "springtide-controller"
)

// Remember opens the store that --store names, or a way to the controller's read API. The second value closes the first.
func (o *Options) Remember(ctx context.Context, c *Clients) (Memory, func(), error) {
	if dsn := cmp.Or(o.Store, c.Store); dsn != "" {
		s, err := openStore(ctx, dsn)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	if c.memory != nil {
		return c.memory, func() {}, nil
	}
	client, closeWay, err := o.controllerClient(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return client, closeWay, nil
}

// controllerClient reaches the leader's read API with the user's own token. The connection goes through the API server to the leader's pod
// (pods/portforward), and its TLS ends there.
func (o *Options) controllerClient(ctx context.Context, c *Clients) (*readapi.Client, func(), error) {
	if c.config == nil {
		return nil, nil, fmt.Errorf("no way to the controller: give --store")
	}
	system := cmp.Or(o.System, ControllerNamespace)
	authority, err := c.Core.CoreV1().ConfigMaps(system).Get(ctx, servingObject, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read ConfigMap %s/%s, which says whom to trust: %w: is the controller run with --serve, and is Role springtide-reader bound to you?", system, servingObject, err)
	}
	cfg := rest.CopyConfig(c.config)
	if cfg.BearerToken == "" && cfg.BearerTokenFile == "" && cfg.ExecProvider == nil && cfg.AuthProvider == nil {
		return nil, nil, fmt.Errorf("your kubeconfig logs in without a token, and the controller asks for one: give --token, as in --token=$(kubectl create token ACCOUNT), or --store")
	}
	cfg.TLSClientConfig = rest.TLSClientConfig{CAData: []byte(authority.Data["ca.crt"]), ServerName: "springtide-api." + system + ".svc"}
	cfg.Username, cfg.Password = "", ""
	closeWay := func() {}
	cfg.Host = o.controllerURL
	if cfg.Host == "" {
		port, closing, err := o.forward(ctx, c, system)
		if err != nil {
			return nil, nil, err
		}
		cfg.Host, closeWay = fmt.Sprintf("https://127.0.0.1:%d", port), closing
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		closeWay()
		return nil, nil, fmt.Errorf("make the client of the controller: %w", err)
	}
	return &readapi.Client{HTTP: client, Base: strings.TrimSuffix(cfg.Host, "/")}, closeWay, nil
}

// forward opens a port of this machine that leads to the leader's pod.
func (o *Options) forward(ctx context.Context, c *Clients, system string) (port uint16, closing func(), err error) {
	lease, err := c.Core.CoordinationV1().Leases(system).Get(ctx, controllerLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
		return 0, nil, fmt.Errorf("no controller leads in namespace %s: see springtide doctor", system)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read the controller's Lease: %w", err)
	}
	// The identity is the pod's name and a random suffix.
	pod := *lease.Spec.HolderIdentity
	if i := strings.LastIndexByte(pod, '-'); i > 0 {
		pod = pod[:i]
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return 0, nil, fmt.Errorf("open a way to the controller: %w", err)
	}
	at := c.Core.CoreV1().RESTClient().Post().Resource("pods").Namespace(system).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	stop, ready := make(chan struct{}), make(chan struct{})
	way, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + servingPort}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, fmt.Errorf("open a way to the controller: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- way.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, nil, fmt.Errorf("open a way to pod %s/%s: %w", system, pod, err)
	case <-ctx.Done():
		close(stop)
		return 0, nil, ctx.Err()
	}
	ports, err := way.GetPorts()
	if err != nil || len(ports) == 0 {
		close(stop)
		return 0, nil, fmt.Errorf("open a way to pod %s/%s: no port (%w)", system, pod, err)
	}
	return ports[0].Local, func() { close(stop) }, nil
}

// openStore opens the controller's store for reading: nothing is created, so that a slip in the path shows.
func openStore(ctx context.Context, dsn string) (*store.Store, error) {
	s, err := store.Open(ctx, dsn, store.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return s, nil
}
