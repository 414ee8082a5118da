package plane

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is what one component has taken of this machine.
type Usage struct {
	Component string
	// Memory is the resident memory in bytes.
	Memory int64
	// CPU is the processor time of the process since its start, of user and kernel together.
	CPU time.Duration
}

// Usage reports what each running component has taken, in starting order.
func (p *Plane) Usage() []Usage {
	var out []Usage
	for _, c := range p.parts {
		if u, ok := ProcessUsage(c.name, c.pid()); ok {
			out = append(out, u)
		}
	}
	return out
}

// clockTick is the unit of processor times under /proc: 100 a second on every Linux that Go runs on.
const clockTick = time.Second / 100

// ProcessUsage reads what a process has taken, under the name given; false when the process is gone.
func ProcessUsage(name string, pid int) (Usage, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, false
	}
	// The second field is the command's name in parentheses, and may hold spaces: the fields after it are counted from 3 on.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 22 {
		return Usage{}, false
	}
	field := func(n int) int64 {
		v, _ := strconv.ParseInt(string(fields[n-3]), 10, 64) // the kernel writes numbers there
		return v
	}
	return Usage{
		Component: name,
		Memory:    field(24) * int64(os.Getpagesize()),
		CPU:       time.Duration(field(14)+field(15)) * clockTick,
	}, true
}
