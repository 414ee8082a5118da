package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
)

// unlimited are the kernel's own values of the limits above the pods. Those outlive every pod.
var unlimited = []shape.Value{{File: "cpu.max", Text: "max"}, {File: "memory.max", Text: "max"}, {File: "memory.high", Text: "max"},
	{File: "memory.min", Text: "0"}, {File: "memory.low", Text: "0"}}

// Uninstalled reports whether the DaemonSet of this node's agent is gone. A pod that only restarts still has its DaemonSet.
func (c *Cluster) Uninstalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := false
	for _, p := range c.parsed {
		if p.says.claim.Component != v1alpha1.ComponentAgent || p.says.claim.Owner.Kind != facts.KindDaemonSet {
			continue
		}
		if p.says.claim.Standing(witness{c, c.daemons}) == facts.IsSystem {
			return false
		}
		gone = true
	}
	return gone
}

// lift takes the limits away that the agent set: those above the pods, by its configuration and by what its journal has of an earlier one, and those of
// reclaimed pods that run on.
func (a *Agent) lift() {
	if a.cgroups == nil { // no cycle has found them
		return
	}
	written, devices, err := writtenFiles(a.journal.path+".1", a.journal.path)
	if err != nil {
		a.o.Log.Warn("the journal was not read: limits of an earlier configuration stay until the machine starts again", "err", err)
	}
	parents := a.cgroups.Parents()
	var groups []shape.Group
	for _, path := range []string{parents.Pods, parents.Burstable, parents.BestEffort} {
		g := shape.Group{Path: path}
		for _, v := range unlimited {
			if written[path+"/"+v.File] || a.limits(path == parents.BestEffort, v.File) {
				v.Why = "the agent is uninstalled"
				g.Values = append(g.Values, v)
			}
		}
		groups = append(groups, g)
	}
	machine := shape.Group{}
	for _, d := range devices {
		machine.Values = append(machine.Values, shape.Value{File: shape.IOCostQoS, Text: d + " enable=0", Why: "the agent is uninstalled"})
	}
	groups = append(groups, machine)
	if in := a.guard.shape; in != nil {
		for i := range in.Pods {
			if p := &in.Pods[i]; in.Boxed(p) {
				groups = append(groups, shape.Unboxed(p.Path, p.Own, "the agent is uninstalled"))
			}
		}
	}
	writes, _ := shape.Plan(groups, a.cgroups.Read, a.topology.AllCPUs(), a.topology.Mems(a.topology.AllCells()))
	entries := a.apply(context.Background(), writes)
	a.o.Log.Info("the agent is uninstalled: the limits above the pods are lifted", "files", len(entries))
}

// limits reports whether the configuration has the agent write a file above the pods.
func (a *Agent) limits(bestEffort bool, file string) bool {
	switch {
	case !bestEffort:
		return a.o.Knobs.Protect && (file == "memory.min" || file == "memory.low")
	case file == "cpu.max":
		return a.o.Overlap.Quota
	}
	return a.o.Overlap.Box && (file == "memory.max" || file == "memory.high")
}

// writtenFiles are the files that journals say were written, and the devices on which io.cost was set.
func writtenFiles(journals ...string) (out map[string]bool, devices []string, err error) {
	out = map[string]bool{}
	for _, path := range journals {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, devices, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var e Entry
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.Error == "" { // a crash may have cut the last line
				out[e.Path+"/"+e.File] = true
				if f := strings.Fields(e.New); e.File == shape.IOCostQoS && len(f) > 0 && !slices.Contains(devices, f[0]) {
					devices = append(devices, f[0])
				}
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return out, devices, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return out, devices, nil
}
