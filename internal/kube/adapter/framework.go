package adapter

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

const (
	// minRestarts is the least budget of restarts that a resize may be charged to. A job that follows the tide up and down in five steps
	// each is resized ten times a day, and a week of training should not end by that: 10 × 7, rounded up for days with a burst.
	minRestarts = 100
	// maxLastCall bounds the wait for members who may still join. It is paid by every member at every resize; a plan is made each
	// minute, so at a quarter of that a growing job still trains three quarters of its time. The default, 30 s, halves it.
	maxLastCall = 15 * time.Second
)

// vouched reports whether the owner of a workload answers for what its command lines say: they may stand in a script of the image, where
// nobody can read them.
func vouched(annotations map[string]string) bool {
	return annotations[v1alpha1.AnnotationElasticSettings] == v1alpha1.ElasticSettingsVouched
}

// frameworkRefusals looks for a launcher in the command lines of pods, and judges its settings.
func frameworkRefusals(spec *corev1.PodSpec, where string, vouched bool) []string {
	if vouched {
		return nil
	}
	c := commandOf(spec)
	switch {
	case c.runs("horovodrun"):
		return horovodRefusals(c, where)
	case c.runs("torchrun") || c.names("torch.distributed.run"):
		return torchRefusals(torchrunOf(c, spec), where)
	}
	return nil
}

// horovodRefusals judges the flags of horovodrun.
func horovodRefusals(c command, where string) []string {
	var out []string
	if _, ok := c.flag("--host-discovery-script"); !ok {
		refuse(&out, "HostDiscoveryMissing", "horovodrun of %s has no --host-discovery-script, so it never sees members come and go: name one, as in /etc/mpi/discover_hosts.sh", where)
	}
	if _, ok := c.flag("--blacklist-cooldown-range"); !ok {
		refuse(&out, "BlacklistWithoutCooldown", "horovodrun of %s bans a host that was recalled for the life of the job: add --blacklist-cooldown-range, as in 30 300", where)
	}
	if v, ok := c.flag("--reset-limit"); ok && number(v, 0) < minRestarts {
		refuse(&out, "ResetLimitTooLow", "--reset-limit %s of horovodrun of %s is charged by each resize and then ends the job: leave it out, or allow %d", v, where, minRestarts)
	}
	return out
}

// torchrun are the settings of torchrun that decide whether members may come and go.
type torchrun struct {
	elastic         bool // --nnodes is a range
	nodes           string
	restarts        int32
	lastCall        time.Duration
	restartsSetting string
	lastCallSetting string
}

// torchrunOf reads them from the command line, and where it is silent from the environment, as torchrun itself does.
func torchrunOf(c command, spec *corev1.PodSpec) torchrun {
	t := torchrun{restartsSetting: "--max-restarts", lastCallSetting: "last_call_timeout in --rdzv-conf"}
	t.nodes = c.flagOr(env(spec, "PET_NNODES"), "--nnodes")
	t.elastic = strings.Contains(t.nodes, ":")
	t.restarts = number(c.flagOr(env(spec, "PET_MAX_RESTARTS"), "--max-restarts", "--max_restarts"), 0)
	t.lastCall = lastCall(c.flagOr(env(spec, "PET_RDZV_CONF"), "--rdzv-conf", "--rdzv_conf"))
	return t
}

func torchRefusals(t torchrun, where string) []string {
	var out []string
	if !t.elastic {
		refuse(&out, "FixedMembership", "torchrun of %s runs with a fixed number of members (--nnodes %s): give a range, as in --nnodes 1:8", where, orNone(t.nodes))
	}
	if t.restarts < minRestarts {
		refuse(&out, "MaxRestartsTooLow", "%s of %s is %d: each resize is charged to it, and then the job ends: allow at least %d", t.restartsSetting, where, t.restarts, minRestarts)
	}
	switch {
	case t.lastCall <= 0:
		refuse(&out, "LastCallTooLong", "%s of %s is not set, and every resize stops all members for 30 s or more: set it to %d or less", t.lastCallSetting, where, int(maxLastCall.Seconds()))
	case t.lastCall > maxLastCall:
		refuse(&out, "LastCallTooLong", "%s of %s is %s, and every resize stops all members that long: set it to %d or less", t.lastCallSetting, where, t.lastCall, int(maxLastCall.Seconds()))
	}
	return out
}

// lastCall reads last_call_timeout out of "key=value,key=value"; zero where it is not there.
func lastCall(conf string) time.Duration {
	for pair := range strings.SplitSeq(conf, ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(pair), "last_call_timeout="); ok {
			return time.Duration(number(v, 0)) * time.Second
		}
	}
	return 0
}

// command are the words of the command lines of a pod's containers.
type command []string

// commandOf splits at blanks also within an argument, since a command line often is one argument of a shell.
func commandOf(spec *corev1.PodSpec) command {
	var c command
	for i := range spec.Containers {
		for _, part := range slices.Concat(spec.Containers[i].Command, spec.Containers[i].Args) {
			c = append(c, strings.Fields(strings.ReplaceAll(part, "\\\n", " "))...)
		}
	}
	return c
}

// runs reports whether a program is named, with or without its path.
func (c command) runs(program string) bool {
	return slices.ContainsFunc(c, func(w string) bool { return path.Base(w) == program })
}

func (c command) names(word string) bool { return slices.Contains(c, word) }

// flag reads the value of the first of some spellings of a flag, whether it follows after a blank or a '='.
func (c command) flag(names ...string) (string, bool) {
	for i, w := range c {
		name, value, inline := strings.Cut(w, "=")
		if !slices.Contains(names, name) {
			continue
		}
		switch {
		case inline:
			return value, true
		case i+1 < len(c):
			return c[i+1], true
		}
		return "", true
	}
	return "", false
}

func (c command) flagOr(otherwise string, names ...string) string {
	if v, ok := c.flag(names...); ok {
		return v
	}
	return otherwise
}

// env reads a variable of the containers; values from elsewhere (a secret, a field) cannot be read and count as absent.
func env(spec *corev1.PodSpec, name string) string {
	for i := range spec.Containers {
		for _, e := range spec.Containers[i].Env {
			if e.Name == name {
				return e.Value
			}
		}
	}
	return ""
}

func number(s string, otherwise int32) int32 {
	n, err := strconv.ParseInt(strings.Trim(s, `"'`), 10, 32)
	if err != nil {
		return otherwise
	}
	return int32(n)
}

func orNone(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}
