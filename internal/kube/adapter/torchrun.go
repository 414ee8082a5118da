package adapter

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// maxLastCall bounds the wait for members who may still join. It is paid by every member at every resize; a plan is made each
// minute, so at a quarter of that a growing job still trains three quarters of its time. The default, 30 s, halves it.
const maxLastCall = 15 * time.Second

// minJoin is the least time that an agent waits for its gang to be whole again: twice what the planner lets a gang form. It is the default, too.
const minJoin = 10 * time.Minute

// dynamicBackend is the rendezvous that forms again whenever members come or go. The default, static, waits for all of
// --nnodes and is never left.
const dynamicBackend = "c10d"

// torchrun are the settings of torchrun that decide whether members may come and go.
type torchrun struct {
	nodes           string // --nnodes: a number, or a range MIN:MAX
	restarts        int32
	lastCall        time.Duration
	join            string // join_timeout in seconds, as it stands there; empty where it is left out
	backend         string
	endpoint        string
	restartsSetting string
	confSetting     string
	standalone      bool
}

// runsTorch reports whether members are started by torchrun, by one of its names as a module too.
func (c command) runsTorch() bool { return slices.ContainsFunc(c, startsTorch) }

func startsTorch(w string) bool {
	module := strings.TrimPrefix(w, "-m") // python takes the module with or without a blank
	return path.Base(w) == "torchrun" || module == "torch.distributed.run" || module == "torch.distributed.launch"
}

// torchrunOf reads them from the command line, and where it is silent from the environment, as torchrun itself does.
func torchrunOf(c command, spec *corev1.PodSpec) torchrun {
	conf := env(spec, "PET_RDZV_CONF")
	return torchrun{nodes: env(spec, "PET_NNODES"), restarts: number(env(spec, "PET_MAX_RESTARTS"), 0), lastCall: lastCall(conf), join: confValue(conf, "join_timeout"),
		backend: env(spec, "PET_RDZV_BACKEND"), restartsSetting: "--max-restarts", confSetting: "--rdzv-conf"}.under(c, spec)
}

// under are the settings once the command line has had its say.
func (t torchrun) under(c command, spec *corev1.PodSpec) torchrun {
	c = c.own(startsTorch)
	if v, ok := c.flag("--nnodes"); ok {
		t.nodes = v
	}
	if v, ok := c.flag("--max-restarts", "--max_restarts"); ok {
		t.restarts, t.restartsSetting = number(v, 0), "--max-restarts"
	}
	if v, ok := c.flag("--rdzv-conf", "--rdzv_conf"); ok {
		t.lastCall, t.join, t.confSetting = lastCall(v), confValue(v, "join_timeout"), "--rdzv-conf"
	}
	t.backend = strings.Trim(c.flagOr(t.backend, "--rdzv-backend", "--rdzv_backend"), `"'`)
	t.endpoint = endpointOf(c, spec)
	t.standalone = slices.Contains(c, "--standalone")
	return t
}

// span reads the range of --nnodes; a single number is both of its ends, and one that cannot be read here is zero.
func (t torchrun) span() (lo, hi int32) {
	first, last, ranged := strings.Cut(strings.Trim(t.nodes, `"'`), ":")
	lo = number(first, 0)
	if !ranged {
		return lo, lo
	}
	return lo, number(last, 0)
}

// elastic reports whether --nnodes leaves room between its ends. A range with a variable in it is taken at its word.
func (t torchrun) elastic() bool {
	lo, hi := t.span()
	return strings.Contains(t.nodes, ":") && (lo < hi || lo == 0 || hi == 0)
}

// joint reports whether the member meets others, and does not work by itself alone.
func (t torchrun) joint() bool {
	_, hi := t.span()
	return !t.standalone && (hi > 1 || t.elastic())
}

// otherParts marks a bound that other parts fill in part.
const otherParts = " (without the other parts)"

// bounds are those of one part, next to so many members of others.
func (t torchrun) bounds(others int32) (lo, hi Bound) {
	least, most := t.span()
	if !t.elastic() || most == 0 {
		return lo, hi
	}
	name := "--nnodes"
	if others > 0 {
		name += otherParts
	}
	return Bound{max(least-others, 0), name}, Bound{max(most-others, 0), name}
}

func torchRefusals(t torchrun, where string) []fleet.Problem {
	var out []fleet.Problem
	switch {
	case !t.elastic():
		refuse(&out, catalog.FixedNodes, where, orNone(t.nodes))
	case !t.standalone && (t.backend == "" || t.backend == "static"):
		refuse(&out, catalog.StaticRendezvous, where, orNone(t.backend), t.nodes, dynamicBackend)
	}
	if t.restarts < minRestarts {
		refuse(&out, catalog.MaxRestartsTooLow, t.restartsSetting, where, t.restarts, minRestarts)
	}
	switch {
	case t.lastCall <= 0:
		refuse(&out, catalog.LastCallUnset, t.confSetting, where, int(maxLastCall.Seconds()))
	case t.lastCall > maxLastCall:
		refuse(&out, catalog.LastCallTooLong, t.confSetting, where, t.lastCall, int(maxLastCall.Seconds()))
	}
	if t.join != "" && seconds(t.join) < minJoin {
		refuse(&out, catalog.JoinTimeoutTooShort, t.confSetting, where, t.join, int(minJoin.Seconds()))
	}
	return out
}

// lastCall reads last_call_timeout; zero where it is not there.
func lastCall(conf string) time.Duration { return seconds(confValue(conf, "last_call_timeout")) }

// seconds are a number of them; zero where it cannot be read here.
func seconds(s string) time.Duration { return time.Duration(number(s, 0)) * time.Second }

// confValue reads a value out of "key=value,key=value", of which torchrun takes the last; empty where it is not there.
func confValue(conf, key string) string {
	var value string
	for pair := range strings.SplitSeq(strings.Trim(conf, `"'`), ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(pair), key+"="); ok {
			value = v
		}
	}
	return value
}

// judgeEndpoint refuses a rendezvous that lives in a member: its store goes with the process at the endpoint, and then all members lose
// each other. Which member is recalled is a matter of machines, so the first is as likely as any. Own says that the endpoint stands in the
// part's own command line, where a loopback address is each member's; so is what is left out.
func (p *Part) judgeEndpoint(t torchrun, own bool, hosts podHosts, where string) {
	host := hostOf(t.endpoint)
	switch {
	case own && (itself(host) || host == "" && t.backend == dynamicBackend && !t.standalone):
		refuse(&p.Refusals, catalog.RendezvousIsMember, orNone(t.endpoint), where)
	case hosts.has(host):
		refuse(&p.Refusals, catalog.RendezvousOnMember, t.endpoint, where)
	}
}

// endpointOf reads where members meet, with variables of the container in place.
func endpointOf(c command, spec *corev1.PodSpec) string {
	s := strings.Trim(c.flagOr(env(spec, "PET_RDZV_ENDPOINT"), "--rdzv-endpoint", "--rdzv_endpoint"), `"'`)
	return variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := strings.Trim(ref, "${()}")
		switch {
		case name == "HOSTNAME" || ownField(spec, name):
			return loopback
		case env(spec, name) != "":
			return env(spec, name)
		}
		return ref
	})
}

// variable is a reference as the kubelet and shells write it.
var variable = regexp.MustCompile(`\$\(\w+\)|\$\{\w+\}|\$\w+`)

const loopback = "localhost"

// hostOf is the host of HOST:PORT.
func hostOf(endpoint string) string {
	if six, _, ok := strings.Cut(strings.TrimPrefix(endpoint, "["), "]"); ok && strings.HasPrefix(endpoint, "[") {
		return six
	}
	host, _, _ := strings.Cut(endpoint, ":")
	return host
}

// itself reports whether a host is the asking pod itself: a loopback address, or what the shell finds out about its own
// pod.
func itself(host string) bool {
	return host == loopback || host == "::1" || host == "0.0.0.0" || strings.HasPrefix(host, "127.") ||
		strings.HasPrefix(host, "$(hostname") || strings.HasPrefix(host, "`hostname")
}

// ownField reports whether a variable holds the pod's own name or address.
func ownField(spec *corev1.PodSpec, name string) bool {
	for i := range spec.Containers {
		for _, e := range spec.Containers[i].Env {
			if e.Name == name && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
				return slices.Contains([]string{"status.podIP", "status.podIPs", "metadata.name"}, e.ValueFrom.FieldRef.FieldPath)
			}
		}
	}
	return false
}
