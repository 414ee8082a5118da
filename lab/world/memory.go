package world

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/springtide/springtide/lab/plane"
)

// Memory reports the resident memory of the whole lab: the control plane's components, this process (the world and its Prometheus), and
// the controllers.
func (w *World) Memory() []plane.Memory {
	out := append(w.plane.Memory(), plane.Memory{Component: "springtide-lab", Bytes: resident(os.Getpid())})
	for _, c := range w.controllers {
		if pid := c.pid(); pid != 0 {
			out = append(out, plane.Memory{Component: "springtide " + c.id, Bytes: resident(pid)})
		}
	}
	return out
}

// resident reads a process's resident memory; zero when it is gone.
func resident(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data)) // size resident shared ..., in pages
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
