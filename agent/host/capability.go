package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/springtide/springtide/agent/shape"
)

// Capability is something that the machine offers, or does not. Type and Reason follow the rules of Kubernetes conditions.
type Capability struct {
	Type    string
	OK      bool
	Reason  string
	Message string
}

// Types of capabilities. The agent shows them as conditions of the NodeShare.
const (
	CapCPUSets    = "CPUSets"           // pods are confined to the cores and cells of their side
	CapCPUIdle    = "CPUIdle"           // reclaimed BestEffort pods run when no other does
	CapCPUQuota   = "CPUQuota"          // the quota of reclaimed pods follows what online leaves idle
	CapMemoryBox  = "MemoryBox"         // reclaimed pods run in a memory box
	CapEvictions  = "Evictions"         // evictions under pressure are accepted
	CapReclaim    = "MemoryReclaim"     // page cache of reclaimed pods is taken before any of them is evicted
	CapPSI        = "PressureStall"     // the kernel reports pressure
	CapIOWeight   = "IOWeight"          // reclaimed pods have a low weight for I/O
	CapIOCost     = "IOCost"            // that weight is enforced on devices that io.cost.qos enables
	CapResctrl    = "CacheAndBandwidth" // reclaimed pods have a class of cache and memory bandwidth
	CapNetwork    = "NetworkClass"      // reclaimed pods have a class of network traffic
	CapNRI        = "RuntimeHooks"      // containers are adjusted before they start
	CapState      = "StateKept"         // the last share is on disk
	CapProtection = "MemoryProtection"  // the kernel reclaims what online requests last
	CapOOMOrder   = "OOMOrder"          // the kernel ends running reclaimed pods in the order of evictions
)

// Detect finds what the machine offers; enablesCost says that the configuration enables io.cost. A missing capability is skipped; its condition says why.
func Detect(r Roots, c *Cgroups, enablesCost bool) []Capability {
	var out []Capability
	add := func(kind string, why error, fine string) bool {
		cap := Capability{Type: kind, OK: why == nil, Reason: "Available", Message: fine}
		if why != nil {
			cap.Reason, cap.Message = "Missing", why.Error()
			var n named
			if errors.As(why, &n) {
				cap.Reason = n.reason
			}
		}
		out = append(out, cap)
		return why == nil
	}
	text, _ := c.Read(c.parents.Pods, "cgroup.controllers")
	controllers := strings.Fields(text)
	has := func(controller string) error {
		if slices.Contains(controllers, controller) {
			return nil
		}
		return named{"NoController", fmt.Sprintf("the kernel or the kubelet offers no %s controller below %s", controller, c.parents.Pods)}
	}
	file := func(path, name string) error {
		if _, err := os.Stat(filepath.Join(c.root, path, name)); err != nil {
			return named{"NoFile", fmt.Sprintf("%s has no %s: the kernel is too old or built without it", path, name)}
		}
		return nil
	}
	writable := c.writable()
	confines := "pods are confined to the cores and cells of their side"
	if c.systemd {
		confines += "; the cgroup driver is systemd: limits of pods and of what is above them that systemd takes back are written again each cycle"
	}
	add(CapCPUSets, cmpErr(writable, has("cpuset"), staticManager(r, "cpu_manager_state", "cpuManagerPolicy"), staticManager(r, "memory_manager_state", "memoryManagerPolicy")),
		confines)
	add(CapCPUIdle, cmpErr(writable, file(c.parents.BestEffort, "cpu.idle")), "reclaimed BestEffort pods run when no other does")
	add(CapCPUQuota, cmpErr(writable, file(c.parents.BestEffort, "cpu.max")), "the quota of reclaimed pods follows what online leaves idle")
	add(CapMemoryBox, cmpErr(writable, has("memory"), file(c.parents.BestEffort, "memory.high")), "reclaimed pods run in a memory box")
	add(CapReclaim, cmpErr(writable, file(c.parents.BestEffort, "memory.reclaim")), "page cache of reclaimed pods is taken before any of them is evicted")
	add(CapPSI, file(c.parents.Pods, "memory.pressure"), "pressure stall information")
	add(CapIOWeight, cmpErr(writable, has("io"), file(c.parents.BestEffort, "io.weight")), "reclaimed pods have a low weight for I/O")
	add(CapIOCost, func() error {
		text, ok := c.Read("", shape.IOCostQoS)
		switch {
		case !ok:
			return named{"NoFile", "the kernel has no io.cost: io.weight counts with the bfq scheduler alone"}
		case writable != nil:
			return writable
		case !enablesCost && !strings.Contains(text, "enable=1"):
			return named{"NotEnabled", "no device has io.cost enabled: io.weight counts with the bfq scheduler alone; to fix: set ioCostQoS in the agent's configuration"}
		}
		return nil
	}(), "io.weight is enforced on devices that io.cost.qos enables")
	add(CapResctrl, func() error {
		dir := filepath.Join(r.Sys, "fs/resctrl")
		if _, err := os.Stat(filepath.Join(dir, "schemata")); err == nil {
			return nil
		}
		if isDir(dir) { // the kernel makes the directory where the CPU has RDT
			return named{"NotMounted", fmt.Sprintf("resctrl is not mounted at %s; to fix: mount it on the machine (mount -t resctrl resctrl /sys/fs/resctrl), and into the agent's pod by the component deploy/base/agent/resctrl or the chart's agent.resctrl", dir)}
		}
		return named{"NoResctrl", fmt.Sprintf("no %s: the CPU has no RDT, or the kernel was built without it", dir)}
	}(), "reclaimed pods have a class of cache and memory bandwidth")
	add(CapNetwork, named{"NotSupported", "cgroup v2 has no network class; limit reclaimed pods by the CNI's bandwidth annotations"}, "")
	return out
}

// named is an error with a reason for a condition.
type named struct{ reason, text string }

func (n named) Error() string { return n.text }

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
		return named{"ReadOnly", fmt.Sprintf("cgroups cannot be written: %v; to fix: mount %s read-write into the agent's pod", err, c.root)}
	}
	return f.Close()
}

// staticManager reports a kubelet that writes cpusets itself: two writers would take turns for ever.
func staticManager(r Roots, file, key string) error {
	path := filepath.Join(r.Kubelet, file)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) { // every kubelet writes it, whatever its policy
		return named{"NotKubelets", fmt.Sprintf("there is no %s, so %s is not the kubelet's directory, and the agent does not know whether the kubelet writes cpusets; to fix: set kubeletRoot to the kubelet's root directory and mount it there", path, r.Kubelet)}
	}
	if err != nil {
		return named{"Unreadable", fmt.Sprintf("the state of the kubelet's managers cannot be read: %v; to fix: mount the kubelet's directory at %s (kubeletRoot)", err, r.Kubelet)}
	}
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return named{"Unreadable", fmt.Sprintf("%s: %v", path, err)}
	}
	if p := strings.ToLower(state.PolicyName); p != "" && p != "none" {
		return named{"KubeletManages", fmt.Sprintf("the kubelet's policy is %s by %s, so it writes cpusets itself; to fix: set %s: none in the kubelet's configuration and remove the file", state.PolicyName, path, key)}
	}
	return nil
}
