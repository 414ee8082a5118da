// Command scheduling measures pods bound a second on the lab's control plane: by the bundled scheduler, by kube-scheduler of the same version in the same
// run, and by bare bindings, which are the ceiling. The workloads are those of upstream's scheduler_perf, with counts scaled to one machine.
//
// Other work on the machine changes the rate. It changes the processor time that a pod costs much less, so that is measured too, by component.
package main

import (
	"context"
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
	profile              string
}

func main() {
	var o options
	flag.StringVar(&o.lab, "lab", "bin/springtide-lab", "the lab's binary")
	flag.StringVar(&o.kwok, "kwok", "bin/kwok", "the kwok binary")
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes")
	flag.IntVar(&o.pods, "pods", 1000, "pods that are measured")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median counts")
	flag.IntVar(&o.creators, "creators", 16, "creations under way at once: above what any scheduler binds")
	flag.StringVar(&o.workloads, "workloads", strings.Join(names(), ","), "workloads, by comma")
	flag.StringVar(&o.schedules, "schedulers", "springtide,kube,bare", "who binds, by comma; bare binds play the first workload alone")
	flag.StringVar(&o.profile, "profile", "", "folder for processor profiles of the bundled scheduler")
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
	rate     float64
	p50, p99 time.Duration
	cost     cost
}

func run(ctx context.Context, o options) error {
	all := map[string][]result{}
	schedules := strings.Split(o.schedules, ",")
	for round := range o.rounds {
		for _, who := range schedules { // alternating, so that a busy minute hits all alike
			if err := measure(ctx, o, who, all); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, who, err)
			}
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, median of %d, load average %s at the end\n\n", o.nodes, o.rounds, strings.Fields(string(load))[0])
	return print(os.Stdout, strings.Split(o.workloads, ","), schedules, all)
}

// print writes the medians as a table, and next to the bundled scheduler's how many times kube-scheduler's they are.
func print(out io.Writer, workloads, schedules []string, all map[string][]result) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "workload\twho\tpods/s (least, most)\tp50\tp99\tCPU a pod\tAPI server\tetcd\tscheduler\twrites a pod")
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
			fmt.Fprintf(w, "%s\t%s\t%.0f (%.0f, %.0f)\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\n", name, who, m.rate, rs[0].rate, rs[len(rs)-1].rate, short(m.p50), short(m.p99),
				short(m.cost.total()), short(m.cost.cpu[apiServer]), short(m.cost.cpu[etcd]), short(m.cost.scheduler()), m.cost.writes)
		}
		if ours, kube := median["springtide"], median["kube"]; ours.rate > 0 && kube.rate > 0 {
			fmt.Fprintf(w, "%s\tratio\t%.2f\t\t\t%.2f\t%.2f\t\t%.2f\t%.2f\n", name, ours.rate/kube.rate, float64(kube.cost.total())/float64(ours.cost.total()),
				float64(kube.cost.cpu[apiServer])/float64(ours.cost.cpu[apiServer]), float64(kube.cost.scheduler())/float64(ours.cost.scheduler()), kube.cost.writes/ours.cost.writes)
		}
	}
	return w.Flush()
}

func byRate(a, b result) int { return int(a.rate*1000) - int(b.rate*1000) }

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
		rate: pick(func(r result) float64 { return r.rate }),
		p50:  time.Duration(pick(func(r result) float64 { return float64(r.p50) })),
		p99:  time.Duration(pick(func(r result) float64 { return float64(r.p99) })),
		cost: cost{cpu: map[string]time.Duration{}},
	}
	m.cost.writes = pick(func(r result) float64 { return r.cost.writes })
	for name := range rs[0].cost.cpu {
		m.cost.cpu[name] = time.Duration(pick(func(r result) float64 { return float64(r.cost.cpu[name]) }))
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
