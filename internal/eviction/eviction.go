// Package eviction asks the Eviction API to end pods.
package eviction

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/rest"
)

// Once asks for the eviction of one pod, once. client-go's own call obeys the Retry-After of a disruption budget that refuses: it sleeps ten
// seconds, up to ten times, in the caller's goroutine. Callers ask again when their facts are fresh. The client is that of any group of the API server:
// its path does not count. How long the one request may take is ctx's to say.
func Once(ctx context.Context, client rest.Interface, e *policyv1.Eviction) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return fmt.Errorf("evict %s/%s: the request has no deadline", e.Namespace, e.Name)
	}
	return client.Post().AbsPath("/api/v1").Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").
		MaxRetries(0).Body(e).Do(ctx).Error()
}
