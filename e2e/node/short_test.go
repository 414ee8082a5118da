package node

import (
	"context"
	"testing"
	"time"

	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestShort is one loan on a real node, in three minutes on a quiet machine: the node is Ready, online runs on both sockets, one is lent, offline runs on it
// and nowhere else, it is recalled, and online has the whole machine again.
func TestShort(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{})
	n := nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool})
	n.Limit(t, 10*time.Minute) // a busy machine takes a multiple
	c := newCluster(t, n, p)
	c.web = c.Create(t, c.online("web"))
	c.confined(t, c.web, "0-7", "0-3")
	c.lend(t)
	c.confined(t, c.web, "0-3", "0-1")
	job := c.Create(t, c.offline("job"))
	c.confined(t, job, "4-7", "2-3")
	c.recall(t)
	c.remove(t, job)
	c.takeHome(t)
}

// eventuallyRuns waits until a script of the guest succeeds.
func (c *cluster) eventuallyRuns(t *testing.T, what, script string) {
	t.Helper()
	c.Eventually(t, what, func(ctx context.Context) (bool, error) {
		_, err := c.Run(ctx, script)
		return err == nil, nil //nolint:nilerr // not yet
	})
}
