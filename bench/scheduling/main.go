// Command scheduling measures pods bound a second on the lab's control plane: by the bundled scheduler, by kube-scheduler of the same version in the same
// run, and by bare bindings, which are the ceiling. The workloads are those of upstream's scheduler_perf, with counts scaled to one machine.
//
// Other work on the machine changes the rate. It changes the processor time that a pod costs much less, so that is measured too, by component.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	lab, kwok            string
	nodes, pods          int
	rounds, creators     int
	workloads, schedules string
	profile, results     string
	quality              int
	backlog              bool
}

func main() {
	var o options
	flag.StringVar(&o.lab, "lab", "bin/springtide-lab", "the lab's binary")
	flag.StringVar(&o.kwok, "kwok", "bin/kwok", "the kwok binary")
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes")
	flag.IntVar(&o.pods, "pods", 1000, "pods that are measured")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median counts. With 0 the table shows earlier results alone")
	flag.IntVar(&o.creators, "creators", 16, "creations under way at once: above what any scheduler binds")
	flag.StringVar(&o.workloads, "workloads", strings.Join(names(), ","), "workloads, by comma")
	flag.StringVar(&o.schedules, "schedulers", "springtide,kube,bare", "who binds, by comma; bare binds play the first workload alone")
	flag.StringVar(&o.profile, "profile", "", "folder for processor profiles of the bundled scheduler")
	flag.StringVar(&o.results, "results", "", "file to which results are added; the table shows all of it, so that rounds can be played at different times")
	flag.BoolVar(&o.backlog, "backlog", false, "create all pods that are measured while the scheduler pauses, and measure from when it goes on: what it binds, without what the creations take")
	flag.IntVar(&o.quality, "quality", 100, "nodes on which the quality of the placement is compared with the naive twin's, after the rounds; 0 leaves it out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scheduling:", err)
		os.Exit(1)
	}
}

// result is one measurement. Costs are a pod's.
type result struct {
	Workload, Who string
	Rate          float64 // pods bound a second
	P50, P99      time.Duration
	Cost          cost
}

// results are the measurements by workload and scheduler.
type results map[string][]result

func (r results) add(x result) { r[x.Workload+" "+x.Who] = append(r[x.Workload+" "+x.Who], x) }

// load reads what earlier runs have measured.
func (r results) load(file string) error {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		var x result
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		r.add(x)
	}
	return err
}

// store adds a measurement to the file.
func store(file string, x result) error {
	if file == "" {
		return nil
	}
	data, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

func run(ctx context.Context, o options) error {
	schedules, workloads := strings.Split(o.schedules, ","), strings.Split(o.workloads, ",")
	all := results{}
	if err := all.load(o.results); err != nil {
		return err
	}
	if o.rounds == 0 {
		return table(os.Stdout, workloads, schedules, all)
	}
	benches, stop, err := start(ctx, o, schedules)
	defer stop()
	if err != nil {
		return err
	}
	var failed error
	for _, who := range schedules { // the first pods of a new control plane are slow under each scheduler
		if w, err := find(workloads[0]); err == nil && who != "bare" {
			if _, err := benches[who].play(ctx, w); err != nil {
				return fmt.Errorf("warm up, %s: %w", who, err)
			}
		}
	}
	for range o.rounds {
		for k, name := range workloads {
			w, err := find(name)
			if err != nil {
				return err
			}
			for _, who := range schedules { // alternating, so that a busy minute hits all alike
				if who == "bare" && k > 0 {
					continue // the ceiling does not depend on what a scheduler reads
				}
				r, err := benches[who].play(ctx, w)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil { // the other workloads are measured all the same: a run takes hours
					err = fmt.Errorf("%s, %s: %w", name, who, err)
					fmt.Fprintln(os.Stderr, "scheduling:", err)
					failed = errors.Join(failed, err, benches[who].tidy(ctx))
					continue
				}
				r.Workload, r.Who = name, who
				all.add(r)
				if err := store(o.results, r); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-26s %-10s %5.0f pods/s, p50 %s, p99 %s, CPU a pod %s (API server %s, scheduler %s), %.2f writes a pod\n", name, who, r.Rate, short(r.P50), short(r.P99),
					short(r.Cost.total()), short(r.Cost.CPU[apiServer]), short(r.Cost.scheduler()), r.Cost.Writes)
			}
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, medians, load average %s at the end\n\n", o.nodes, strings.Fields(string(load))[0])
	if err := table(os.Stdout, workloads, schedules, all); err != nil {
		return err
	}
	if o.quality > 0 {
		failed = errors.Join(failed, compare(ctx, os.Stdout, o.quality, schedules, benches))
	}
	return failed
}

// table writes the medians as a table, and next to the bundled scheduler's how many times kube-scheduler's they are.
func table(out io.Writer, workloads, schedules []string, all results) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug) // with bars between the columns, as a table of Markdown
	fmt.Fprintln(w, "workload\twho\truns\tpods/s (least, most)\tp50\tp99\tCPU a pod\tAPI server\tetcd\tscheduler\twrites a pod\t")
	fmt.Fprintln(w, strings.Repeat("---\t", 11))
	for _, name := range workloads {
		median := map[string]result{}
		for _, who := range schedules {
			rs := all[name+" "+who]
			if len(rs) == 0 {
				continue
			}
			m := middle(rs)
			median[who] = m
			slices.SortFunc(rs, byRate)
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f (%.0f, %.0f)\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t\n", name, who, len(rs), m.Rate, rs[0].Rate, rs[len(rs)-1].Rate, short(m.P50), short(m.P99),
				short(m.Cost.total()), short(m.Cost.CPU[apiServer]), short(m.Cost.CPU[etcd]), short(m.Cost.scheduler()), m.Cost.Writes)
		}
		if ours, kube := median["springtide"], median["kube"]; ours.Rate > 0 && kube.Rate > 0 {
			fmt.Fprintf(w, "%s\tratio\t\t%.2f\t\t\t%.2f\t%.2f\t\t%.2f\t%.2f\t\n", name, ours.Rate/kube.Rate, float64(kube.Cost.total())/float64(ours.Cost.total()),
				float64(kube.Cost.CPU[apiServer])/float64(ours.Cost.CPU[apiServer]), float64(kube.Cost.scheduler())/float64(ours.Cost.scheduler()), kube.Cost.Writes/ours.Cost.Writes)
		}
	}
	return w.Flush()
}

func byRate(a, b result) int { return int(a.Rate*1000) - int(b.Rate*1000) }

// middle is the median of each figure by itself.
func middle(rs []result) result {
	pick := func(value func(result) float64) float64 {
		var all []float64
		for _, r := range rs {
			all = append(all, value(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	m := result{
		Rate: pick(func(r result) float64 { return r.Rate }),
		P50:  time.Duration(pick(func(r result) float64 { return float64(r.P50) })),
		P99:  time.Duration(pick(func(r result) float64 { return float64(r.P99) })),
		Cost: cost{CPU: map[string]time.Duration{}},
	}
	m.Cost.Writes = pick(func(r result) float64 { return r.Cost.Writes })
	for name := range rs[0].Cost.CPU {
		m.Cost.CPU[name] = time.Duration(pick(func(r result) float64 { return float64(r.Cost.CPU[name]) }))
	}
	return m
}

// short is a duration with two digits or three.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
