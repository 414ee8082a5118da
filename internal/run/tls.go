package run

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/serve/admission"
	"github.com/springtide/springtide/internal/serve/certs"
	"github.com/springtide/springtide/internal/serve/probe"
	"github.com/springtide/springtide/internal/serve/readapi"
	"github.com/springtide/springtide/internal/serve/review"
	"github.com/springtide/springtide/store"
)

// serviceName is the Service by which the API server reaches the webhook.
const serviceName = "springtide-api"

// serveTLS serves the webhook and the read API. A certificate that cannot be made yet is made later: until then handshakes fail, and the
// webhook fails open.
func serveTLS(ctx context.Context, client kubernetes.Interface, c *config.Controller, cluster *kube.Cluster, memory *store.Store, h *health, log *slog.Logger) (*http.Server, error) {
	host := serviceName + "." + c.Namespace + ".svc"
	keeper := certs.New(certs.Options{Client: client, Namespace: c.Namespace, Names: []string{host, host + ".cluster.local", serviceName, "localhost"},
		Provided: c.Serving.Certificates == config.CertificatesProvided, Now: time.Now, Log: log})
	if err := keeper.Refresh(ctx); err != nil {
		log.Error("there is no serving certificate yet", "err", err)
	}
	go keeper.Run(ctx)
	return probe.Listen("serving.listen", c.Serving.Listen, "webhook and read API", secureMux(cluster, memory, client, c.Prometheus.NamespaceLabel, h),
		&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: keeper.Certificate}, log)
}

func secureMux(cluster *kube.Cluster, memory readapi.Store, client kubernetes.Interface, namespaceLabel string, h *health) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(admission.Path, &admission.Handler{Known: cluster.Known, NamespaceLabel: namespaceLabel})
	mux.Handle(readapi.Prefix, readapi.New(memory, &review.Reviewer{Client: client}, h.leading))
	return mux
}
