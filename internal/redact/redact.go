// Package redact hides the secrets of addresses before they reach a log, a condition or an error. In comes a URL or DSN as an operator wrote
// it; what it returns names the place and holds no key to it.
package redact

import (
	"net/url"
	"slices"
	"strings"
)

// hidden stands for a secret.
const hidden = "xxxxx"

// open are the parameters of addresses that hold no secret.
var open = [...]string{"sslmode", "sslrootcert", "application_name", "connect_timeout", "target_session_attrs", "search_path"}

// URL is an address without its password and without the values of parameters that may be secrets. Of what is no address it leaves the scheme.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" && strings.Contains(address, "@") {
		scheme, _, ok := strings.Cut(address, "://")
		if !ok {
			return hidden
		}
		return scheme + "://..."
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), hidden)
		}
	}
	if u.RawQuery != "" {
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			u.RawQuery = hidden
			return u.String()
		}
		for key := range q {
			if !slices.Contains(open[:], key) {
				q[key] = []string{hidden}
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.String()
}
