// Package prom is the flags that say how to reach a Prometheus, and which of its series are this cluster's.
package prom

import (
	"fmt"

	"github.com/prometheus/common/config"
	"github.com/spf13/pflag"

	"github.com/springtide/springtide/store/promql"
)

// HTTP are the flags that say how to reach a Prometheus that wants a token or TLS.
type HTTP struct {
	file, Token, CA, cert, key string
}

// Flags adds the flags.
func (o *HTTP) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "prometheus-http", "", "YAML file with TLS, token, basic auth or proxy, in the words of Prometheus' own HTTP client configuration")
	f.StringVar(&o.Token, "prometheus-token-file", "", "file with the bearer token that Prometheus wants")
	f.StringVar(&o.CA, "prometheus-ca-file", "", "file with the authority that signed Prometheus' certificate")
	f.StringVar(&o.cert, "prometheus-cert-file", "", "file with the client certificate that Prometheus wants; with --prometheus-key-file")
	f.StringVar(&o.key, "prometheus-key-file", "", "file with the key of the client certificate")
}

// Over puts what the flags say above a configuration.
func (o *HTTP) Over(c config.HTTPClientConfig) (config.HTTPClientConfig, error) {
	if o.file != "" {
		read, _, err := config.LoadHTTPConfigFile(o.file)
		if err != nil {
			return c, fmt.Errorf("--prometheus-http: %w", err)
		}
		c = *read
	}
	if o.Token != "" {
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: o.Token}
	}
	for _, f := range []struct {
		from string
		to   *string
	}{{o.CA, &c.TLSConfig.CAFile}, {o.cert, &c.TLSConfig.CertFile}, {o.key, &c.TLSConfig.KeyFile}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("how to reach Prometheus: %w", err)
	}
	return c, nil
}

// Cluster are the flags that say which series of a Prometheus are this cluster's.
type Cluster struct{ matchers, replicas []string }

// Flags adds the flags.
func (o *Cluster) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.matchers, "prometheus-matcher", nil, "matcher of this cluster's series where Prometheus holds more, as in cluster=\"prod-eu\"; may be given again")
	f.StringArrayVar(&o.replicas, "prometheus-replica-label", nil, "label that tells copies of one series apart, next to replica and the others that are known; may be given again")
}

// Over puts what the flags say above a configuration.
func (o *Cluster) Over(matchers, replicas []string) (ownMatchers, ownReplicas []string) {
	if len(o.matchers) > 0 {
		matchers = o.matchers
	}
	if len(o.replicas) > 0 {
		replicas = o.replicas
	}
	return matchers, replicas
}

// Cluster is what the flags say, as the store takes it.
func (o *Cluster) Cluster() promql.Cluster {
	return promql.Cluster{Matchers: o.matchers, ReplicaLabels: o.replicas}
}
