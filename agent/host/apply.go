package host

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/springtide/springtide/agent/shape"
)

const (
	viaFile = "file"
	viaNRI  = "nri"
)

// apply carries the writes out in their order. Changes of a container go through the runtime, so that its own record says the same, and are read
// back; whatever the runtime did not do is written as files.
//
// Files cpuset.mems come after all others: the kernel returns from such a write when a worker has moved the pages, 40 ms on a busy machine and up to a
// second, and returns from others at once. So every pod has its CPUs before the first page moves. The order of one file over the cgroups stays.
//
// Each write is in the journal before the next one, so that a kill in the middle of many leaves no change without its line.
func (a *Agent) apply(ctx context.Context, writes []shape.Write) []Entry {
	var out []Entry
	done := func(entries ...Entry) {
		a.record(entries)
		out = append(out, entries...)
	}
	byRuntime := func(w *shape.Write) bool {
		return w.Container != "" && a.runtime != nil && a.runtime.Knows(w.Container)
	}
	var quick, slow []shape.Write
	for i := range writes {
		if w := &writes[i]; w.File == "cpuset.mems" && !byRuntime(w) {
			slow = append(slow, *w)
		} else {
			quick = append(quick, *w)
		}
	}
	var batch []shape.Write
	flush := func() {
		done(a.applyContainers(ctx, batch)...)
		batch = nil
	}
	for _, w := range append(quick, slow...) {
		if byRuntime(&w) {
			batch = append(batch, w)
			continue
		}
		flush()
		if e, ok := a.writeFile(w); ok {
			done(e)
		}
	}
	flush()
	return out
}

// writeFile writes one file. A cgroup that is gone wants nothing any more.
func (a *Agent) writeFile(w shape.Write) (Entry, bool) {
	err := a.cgroups.Write(w.Path, w.File, w.New)
	e := Entry{At: time.Now(), Write: w, Via: viaFile}
	if errors.Is(err, fs.ErrNotExist) {
		return e, false
	}
	if err != nil {
		e.Error = err.Error()
	}
	return e, true
}

// applyContainers changes containers by one call for all of them. A batch may widen and then narrow a set; the runtime gets the last value.
func (a *Agent) applyContainers(ctx context.Context, batch []shape.Write) []Entry {
	if len(batch) == 0 {
		return nil
	}
	var order []string
	updates := map[string]*api.ContainerUpdate{}
	for _, w := range batch {
		u := updates[w.Container]
		if u == nil {
			u = update(w.Container, nil, nil)
			updates[w.Container] = u
			order = append(order, w.Container)
		}
		switch w.File {
		case "cpuset.cpus":
			u.SetLinuxCPUSetCPUs(w.New)
		case "cpuset.mems":
			u.SetLinuxCPUSetMems(w.New)
		}
	}
	list := make([]*api.ContainerUpdate, len(order))
	for i, id := range order {
		list[i] = updates[id]
	}
	err := a.runtime.Update(ctx, list)
	at := time.Now()
	a.m.calls.WithLabelValues(result(err)).Inc()
	if err != nil {
		a.o.Log.Warn("the runtime did not update containers: their cgroup files are written instead", "containers", len(list), "err", err)
	}
	var out []Entry
	last := map[string]int{}
	for i, w := range batch {
		last[w.Path+"/"+w.File] = i
	}
	for i, w := range batch {
		if last[w.Path+"/"+w.File] != i {
			continue
		}
		if text, ok := a.cgroups.Read(w.Path, w.File); ok {
			if has, err := shape.ParseSet(text); err == nil && has.String() == w.New {
				out = append(out, Entry{At: at, Write: w, Via: viaNRI})
				continue
			}
		}
		if e, ok := a.writeFile(w); ok {
			a.m.repaired.Inc()
			out = append(out, e)
		}
	}
	return out
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
