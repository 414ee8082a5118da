package config

import (
	"time"

	promconfig "github.com/prometheus/common/config"
)

// Controller configures one controller process. Durations are written as in "1m30s".
type Controller struct {
	// Kubeconfig is the file to reach the cluster by; inside of a cluster, where it is empty, the pod's own account.
	Kubeconfig string `yaml:"kubeconfig"`
	// Namespace is the controller's own: its lease, fillers and the freeze live there.
	Namespace string `yaml:"namespace"`
	// Identity names this process in the lease; host name and a random suffix when empty. There is no switch to do without the lease, since its
	// epoch fences every write.
	Identity string `yaml:"identity"`
	// Prometheus is where history and live samples come from.
	Prometheus Prometheus `yaml:"prometheus"`
	// Store is where portraits, decisions and the journal are kept: sqlite://PATH or postgres://USER@HOST/DATABASE.
	Store string `yaml:"store"`
	// Listen is the address of metrics, health and readiness.
	Listen string `yaml:"listen"`
	// Serving is the TLS port of the webhook and of the read API.
	Serving Serving `yaml:"serving"`
	// Metrics is the TLS address of metrics, for callers whom the API server lets get them.
	Metrics Metrics `yaml:"metrics"`
	// Pprof serves profiles under /debug/pprof of the address of the metrics.
	Pprof bool `yaml:"pprof"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"logLevel"`
	// Freeze holds every action while it is not empty; it says why. The annotation on the namespace (springtide freeze) does the same
	// without a restart.
	Freeze string `yaml:"freeze"`
	// Interval is the time between cycles; events wake it early.
	Interval Duration `yaml:"interval"`
	// DaemonKinds are the kinds whose pods belong to the system as those of DaemonSets do: a recall neither waits for them nor evicts them. The
	// controller must be allowed to watch them.
	DaemonKinds []Kind `yaml:"daemonKinds"`
	// FallHold is how long a fall of the load that history does not know is held as a fault while no other source confirms it.
	FallHold Duration `yaml:"fallHold"`
	// CleanMargin is how long a machine without a node agent must have been free behind closed marks before the controller calls it clean: a
	// scheduler that saw the marks late binds within it.
	CleanMargin Duration `yaml:"cleanMargin"`
}

// Serving is the port at which the API server asks the webhook, and the command line asks for what only the store knows.
type Serving struct {
	// Listen is its address; nothing is served when it is empty.
	Listen string `yaml:"listen"`
	// Certificates is Self when the controller makes and rotates them, Provided when another component (cert-manager) writes the Secret
	// springtide-serving and the webhook's caBundle.
	Certificates string `yaml:"certificates"`
}

// Metrics is the address at which metrics are served by TLS, to callers whose token the API server knows and whose user may get /metrics.
type Metrics struct {
	// Listen is its address. Metrics are on the address of the probes, without TLS, when it is empty.
	Listen string `yaml:"listen"`
	// CertDir is a directory with tls.crt and tls.key, read again for each connection; the certificate signs itself when it is empty.
	CertDir string `yaml:"certDir"`
}

// The values of [Serving.Certificates].
const (
	CertificatesSelf     = "Self"
	CertificatesProvided = "Provided"
)

// Kind names a kind of objects, as in apiVersion "apps.kruise.io/v1alpha1", kind "DaemonSet".
type Kind struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

// Prometheus is the source of history and live samples.
type Prometheus struct {
	// URL is the base of its HTTP API, as in "http://prometheus.monitoring:9090".
	URL string `yaml:"url"`
	// HTTP holds TLS, bearer token, basic auth and proxy settings, in the words of Prometheus' own configuration.
	HTTP promconfig.HTTPClientConfig `yaml:"httpClientConfig"`
	// NamespaceLabel is the label that names the namespace in this source; tenants' queries are confined by it.
	NamespaceLabel string `yaml:"namespaceLabel"`
	// Matchers choose this cluster's series where the source holds more, as in `cluster="prod-eu"`. They are added to every selector.
	Matchers []string `yaml:"matchers"`
	// ReplicaLabels tell copies of one series apart, as a pair of servers brings, next to those that are known.
	ReplicaLabels []string `yaml:"replicaLabels"`
	// ScrapeInterval is how often the sources of live samples are scraped; 0 learns it from the samples.
	ScrapeInterval Duration `yaml:"scrapeInterval"`
	// Timeout bounds one live query, HistoryTimeout one range query, TenantTimeout one query of a tenant.
	Timeout        Duration `yaml:"timeout"`
	HistoryTimeout Duration `yaml:"historyTimeout"`
	TenantTimeout  Duration `yaml:"tenantTimeout"`
	// TenantQueriesPerService and TenantQueriesPerCycle cap the services' own queries.
	TenantQueriesPerService int `yaml:"tenantQueriesPerService"`
	TenantQueriesPerCycle   int `yaml:"tenantQueriesPerCycle"`
}

// DefaultController returns what a file that says nothing means. Only prometheus.url must be given.
func DefaultController() Controller {
	return Controller{
		Namespace: "springtide-system",
		Prometheus: Prometheus{
			HTTP:           promconfig.DefaultHTTPClientConfig,
			NamespaceLabel: "namespace",
			Timeout:        Duration(10 * time.Second), // below the interval, so that a slow source delays one cycle at most
			HistoryTimeout: Duration(time.Minute),
			TenantTimeout:  Duration(2 * time.Second),
			// 40 queries a cycle of 15 s are 2.7 a second; 2,000 services with one query each are asked every 12.5 minutes.
			TenantQueriesPerService: 4,
			TenantQueriesPerCycle:   40,
		},
		Store:    "sqlite://springtide.db",
		Listen:   "127.0.0.1:8080",
		Serving:  Serving{Certificates: CertificatesSelf},
		LogLevel: "info",
		Interval: Duration(15 * time.Second), // upstream HPA's sync period
		FallHold: Duration(2 * time.Hour),    // longer than most outages of a metrics path, short against a night
		// A scheduler binds within a second or two of its decision; one whose watch lags, or whose binding waits for a volume, within this.
		CleanMargin: Duration(30 * time.Second),
	}
}
