package host

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
)

// Capability is something that the machine offers, or does not. Type and Reason follow the rules of Kubernetes conditions.
type Capability struct {
	Type    string
	OK      bool
	Reason  string
	Message string
}

// Detect finds what the machine offers; enablesCost says that the configuration enables io.cost. A missing capability is skipped; its condition says why.
func Detect(r Roots, c *Cgroups, enablesCost bool) []Capability {
	var out []Capability
	add := func(fine *catalog.Verdict, why error) {
		if why != nil {
			out = append(out, without(fine, why))
		} else {
			out = append(out, with(fine))
		}
	}
	text, _ := c.Read(c.parents.Pods, "cgroup.controllers")
	controllers := strings.Fields(text)
	has := func(controller string) error {
		if slices.Contains(controllers, controller) {
			return nil
		}
		return lacks(catalog.NoController, controller, c.parents.Pods)
	}
	file := func(path, name string) error {
		if _, err := os.Stat(filepath.Join(c.root, path, name)); err != nil {
			return lacks(catalog.NoFile, path, name)
		}
		return nil
	}
	writable := c.writable()
	confines := catalog.CPUSetsAvailable
	if c.systemd {
		confines = catalog.CPUSetsOfSystemd
	}
	add(confines, cmpErr(writable, has("cpuset"), staticManager(r, "cpu_manager_state", "cpuManagerPolicy"),
		staticManager(r, "memory_manager_state", "memoryManagerPolicy")))
	add(catalog.CPUIdleAvailable, cmpErr(writable, file(c.parents.BestEffort, "cpu.idle")))
	add(catalog.CPUQuotaAvailable, cmpErr(writable, file(c.parents.BestEffort, "cpu.max")))
	add(catalog.MemoryBoxAvailable, cmpErr(writable, has("memory"), file(c.parents.BestEffort, "memory.high")))
	add(catalog.ReclaimAvailable, cmpErr(writable, file(c.parents.BestEffort, "memory.reclaim")))
	add(catalog.PSIAvailable, file(c.parents.Pods, "memory.pressure"))
	add(catalog.IOWeightAvailable, cmpErr(writable, has("io"), file(c.parents.BestEffort, "io.weight")))
	add(catalog.IOCostAvailable, func() error {
		text, ok := c.Read("", shape.IOCostQoS)
		switch {
		case !ok:
			return lacks(catalog.NoIOCost)
		case writable != nil:
			return writable
		case !enablesCost && !strings.Contains(text, "enable=1"):
			return lacks(catalog.NotEnabled)
		}
		return nil
	}())
	add(catalog.ResctrlAvailable, func() error {
		dir := filepath.Join(r.Sys, "fs/resctrl")
		if _, err := os.Stat(filepath.Join(dir, "schemata")); err == nil {
			return nil
		}
		if isDir(dir) { // the kernel makes the directory where the CPU has RDT
			return lacks(catalog.NotMounted, dir)
		}
		return lacks(catalog.NoResctrl, dir)
	}())
	add(catalog.NetworkAvailable, lacks(catalog.NotSupported))
	return out
}

// with is a capability that the machine has.
func with(fine *catalog.Verdict) Capability {
	return Capability{Type: fine.Type(), OK: true, Reason: fine.Reason(), Message: fine.Text()}
}

// without is a capability that the machine lacks, and why.
func without(fine *catalog.Verdict, why error) Capability {
	var n named
	if !errors.As(why, &n) {
		n = lacks(catalog.Missing, why.Error())
	}
	return Capability{Type: fine.Type(), Reason: n.reason, Message: n.text}
}

// named is an error with a reason for a condition.
type named struct{ reason, text string }

func (n named) Error() string { return n.text }

// lacks is why a capability lacks; args are what its words take.
func lacks(l *catalog.Lack, args ...any) named { return named{l.Reason(), l.Text(args...)} }

// cmpErr is the first error.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// writable reports why the tree cannot be written, by opening a file for it. Nothing is written.
func (c *Cgroups) writable() error {
	f, err := os.OpenFile(filepath.Join(c.root, c.parents.Pods, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return lacks(catalog.ReadOnly, err, c.root)
	}
	return f.Close()
}

// staticManager reports a kubelet that writes cpusets itself: two writers would take turns for ever.
func staticManager(r Roots, file, key string) error {
	path := filepath.Join(r.Kubelet, file)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) { // every kubelet writes it, whatever its policy
		return lacks(catalog.NotKubelets, path, r.Kubelet)
	}
	if err != nil {
		return lacks(catalog.StateUnreadable, err, r.Kubelet)
	}
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return lacks(catalog.StateNotUnderstood, path, err)
	}
	if p := strings.ToLower(state.PolicyName); p != "" && p != "none" {
		return lacks(catalog.KubeletManages, state.PolicyName, path, key)
	}
	return nil
}
