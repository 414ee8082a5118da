package main

import (
	"fmt"

	"github.com/prometheus/common/config"
	"github.com/spf13/pflag"
)

// promHTTP are the flags that say how to reach a Prometheus that wants a token or TLS.
type promHTTP struct {
	file, token, ca, cert, key string
}

func (o *promHTTP) flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "prometheus-http", "", "YAML file with TLS, token, basic auth or proxy, in the words of Prometheus' own HTTP client configuration")
	f.StringVar(&o.token, "prometheus-token-file", "", "file with the bearer token that Prometheus wants")
	f.StringVar(&o.ca, "prometheus-ca-file", "", "file with the authority that signed Prometheus' certificate")
	f.StringVar(&o.cert, "prometheus-cert-file", "", "file with the client certificate that Prometheus wants; with --prometheus-key-file")
	f.StringVar(&o.key, "prometheus-key-file", "", "file with the key of the client certificate")
}

// over puts what the flags say above a configuration.
func (o *promHTTP) over(c config.HTTPClientConfig) (config.HTTPClientConfig, error) {
	if o.file != "" {
		read, _, err := config.LoadHTTPConfigFile(o.file)
		if err != nil {
			return c, fmt.Errorf("--prometheus-http: %w", err)
		}
		c = *read
	}
	if o.token != "" {
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: o.token}
	}
	for _, f := range []struct {
		from string
		to   *string
	}{{o.ca, &c.TLSConfig.CAFile}, {o.cert, &c.TLSConfig.CertFile}, {o.key, &c.TLSConfig.KeyFile}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("how to reach Prometheus: %w", err)
	}
	return c, nil
}
