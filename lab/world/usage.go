package world

import (
	"os"

	"github.com/springtide/springtide/lab/plane"
)

// Usage reports what the whole lab takes of this machine: the control plane's components, this process (the world and its Prometheus), and
// the controllers. Processor time counts from the beginning of the account.
func (w *World) Usage() []plane.Usage {
	out := w.processes()
	for i := range out {
		if before := w.usedBefore[out[i].Component]; before <= out[i].CPU { // a process that was started again counts from its start
			out[i].CPU -= before
		}
	}
	return out
}

// processes reports what each process took since its start.
func (w *World) processes() []plane.Usage {
	out := w.plane.Usage()
	add := func(name string, pid int) {
		if u, ok := plane.ProcessUsage(name, pid); ok {
			out = append(out, u)
		}
	}
	add("springtide-lab", os.Getpid())
	for _, c := range w.controllers {
		add("springtide "+c.id, c.pid())
	}
	if g := w.judging; g != nil && g.found != nil {
		out = append(out, g.used)
	} else if g != nil && g.process != nil {
		add("judge", g.process.pid())
	}
	return out
}
