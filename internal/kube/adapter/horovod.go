package adapter

import (
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

const (
	// maxCooldown bounds how long a host that was recalled is left out. Horovod doubles the pause with each recall up to the range's end,
	// and takes no more than an hour for it (releases that do not check would leave the host out for days of lent room).
	maxCooldown = time.Hour
	// minElasticTimeout is how long the driver has to wait for its least number of processes. It starts before the first worker, and stays
	// while a gang on lent room waits for the next ebb, which comes within a day; the default, 10 min, ends the job at the first flood.
	minElasticTimeout = 24 * time.Hour
)

// judgeHorovod holds the flags of horovodrun against the part whose members are its hosts. A member has so many slots; zero where they are
// known to the discovery script alone.
func (p *Part) judgeHorovod(c command, spec *corev1.PodSpec, slots int32, where string) {
	p.Refusals = append(p.Refusals, horovodRefusals(c, spec, where)...)
	p.bind(horovodBounds(c, slots))
}

// horovodRefusals judges the flags of horovodrun that let members leave and come back.
func horovodRefusals(c command, spec *corev1.PodSpec, where string) []fleet.Problem {
	var out []fleet.Problem
	c = c.own(startsHorovod)
	if _, ok := c.flag("--host-discovery-script"); !ok {
		refuse(&out, catalog.HostDiscoveryMissing, where)
	}
	if _, ok := c.flag("--blacklist-cooldown-range"); !ok {
		refuse(&out, catalog.BlacklistWithoutCooldown, where)
	}
	for _, v := range c.flagValues(2, "--blacklist-cooldown-range") {
		if time.Duration(number(v, 0))*time.Second > maxCooldown {
			refuse(&out, catalog.BlacklistCooldownTooLong, where, v, int(maxCooldown.Seconds()))
			break
		}
	}
	if v, ok := c.flag("--reset-limit"); ok && number(v, 0) < minRestarts {
		refuse(&out, catalog.ResetLimitTooLow, v, where, minRestarts)
	}
	v := c.flagOr(env(spec, "HOROVOD_ELASTIC_TIMEOUT"), "--elastic-timeout")
	if time.Duration(number(v, 0))*time.Second < minElasticTimeout {
		refuse(&out, catalog.ElasticTimeoutTooShort, where, orNone(v), int(minElasticTimeout.Seconds()))
	}
	return out
}

// horovodBounds are the bounds on members that follow from those on processes: of a member with 8 slots a part counts as the whole.
// Without knowing the slots, one member may hold any number of processes, and needs one of them at least.
func horovodBounds(c command, slots int32) (lo, hi Bound) {
	c = c.own(startsHorovod)
	slots = number(c.flagOr("", "--slots-per-host", "--slots"), slots)
	least, ok := c.flag("--min-np", "--min-num-proc")
	name := "--min-np"
	if !ok {
		least, ok = c.flag("-np", "--num-proc")
		name = "-np"
	}
	if n := number(least, 0); ok && n > 0 {
		lo = Bound{1, name + " " + least + " (one worker at least)"}
		if slots > 0 {
			lo = Bound{(n + slots - 1) / slots, name + " (in workers)"}
		}
	}
	if n := number(c.flagOr("", "--max-np", "--max-num-proc"), 0); n > 0 {
		hi = Bound{n / max(slots, 1), "--max-np (in workers)"}
	}
	return lo, hi
}

func startsHorovod(w string) bool { return path.Base(w) == "horovodrun" }
