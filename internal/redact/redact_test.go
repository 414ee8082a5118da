package redact

import "testing"

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://prometheus.monitoring:9090":                    "http://prometheus.monitoring:9090",
		"https://me:s3cret@thanos.example/api?token=s3cret":    "https://me:xxxxx@thanos.example/api?token=xxxxx",
		"postgres://me:s3cret@db/x?sslmode=require&password=s": "postgres://me:xxxxx@db/x?password=xxxxx&sslmode=require",
		"postgres://me@db/x":                                   "postgres://me@db/x",
		"postgres://u:s3cret@h:port/db":                        "postgres://...",
		"me:s3cret@host":                                       "xxxxx",
		"https:me:s3cret@host":                                 "xxxxx",
		"https://host/?%zz=s3cret":                             "https://host/?xxxxx",
		"sqlite:///var/lib/springtide/springtide.db":           "sqlite:///var/lib/springtide/springtide.db",
	} {
		if got := URL(in); got != want {
			t.Errorf("URL(%q) = %q, want %q", in, got, want)
		}
	}
}
