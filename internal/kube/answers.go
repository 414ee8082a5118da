package kube

import (
	"context"
	"fmt"
	"time"
)

// answersWithin bounds the question whether the API server answers: below the timeout of a liveness probe.
const answersWithin = 3 * time.Second

// Answers asks the API server for its version, once.
func (c *Cluster) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if err := c.in.Side.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error(); err != nil {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	return nil
}
