package world

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/springtide/springtide/lab/process"
)

// openProcesses makes ready to run the pods of some machines as processes.
func (w *World) openProcesses() error {
	if len(w.options.Processes) == 0 {
		return nil
	}
	runs := map[string]bool{}
	for _, name := range w.options.Processes {
		if !slices.ContainsFunc(w.machines, func(m machine) bool { return m.name == name }) {
			return fmt.Errorf("processes: there is no machine %q: they are %s to %s", name, w.machines[0].name, w.machines[len(w.machines)-1].name)
		}
		runs[name] = true
	}
	var err error
	w.runner, err = process.New(process.Options{
		Core: w.api.core, Dynamic: w.api.dynamic, Dir: filepath.Join(w.dir, "pods"), Now: w.clock.Now, Log: w.log,
	})
	if err != nil {
		return err
	}
	w.onClose(w.runner.Close)
	w.table.runner, w.table.runs = w.runner, runs
	return nil
}

// Processes are the pods that run as processes now.
func (w *World) Processes() []process.Process {
	if w.runner == nil {
		return nil
	}
	return w.runner.Processes()
}
