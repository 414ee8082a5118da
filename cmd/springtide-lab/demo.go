package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/node"
	"github.com/springtide/springtide/lab/view"
	"github.com/springtide/springtide/lab/world"
)

// memoryForCPU lets the heap grow to three times what lives before it is collected: the world makes some hundred thousand short-lived
// samples a second, and shares the machine's cores with a control plane.
const memoryForCPU = 200

// demoOptions are the flags of `springtide-lab demo`.
type demoOptions struct {
	world        world.Options
	days         float64
	headless     bool
	noController bool
	report       string
	picture      string
	begin        string
	realNode     bool
	verbose      bool
}

// demo replays days of real load on a real control plane, with springtide in charge.
func demo() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Replay a day of real load on a real control plane, with springtide in charge",
		Long: "Starts a control plane and a Prometheus on this machine, loads a fleet, online services made from real load traces and offline jobs\n" +
			"into it, and replays a day on a virtual clock while springtide runs. At the end it prints what the day came to. Ctrl-C stops\n" +
			"everything and prints the report so far.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.IntVar(&o.world.Nodes, "nodes", 100, "machines")
	f.IntVar(&o.world.Services, "services", 20, "online services")
	f.Float64Var(&o.days, "days", 1, "virtual days to replay")
	f.StringVar(&o.begin, "begin", "peak", "where the day begins: at its peak, where the tide turns and lending starts at once, or at midnight")
	f.DurationVar(&o.world.Interval, "interval", 15*time.Second, "virtual time between two cycles of the controller: most of a day's wall time is the wait for cycles")
	f.Float64Var(&o.world.Speed, "speed", 288, "virtual seconds in a second, at most (288: a day in five minutes)")
	f.Uint64Var(&o.world.Seed, "seed", 1, "what every draw is made from")
	f.DurationVar(&o.world.ScrapeInterval, "scrape-interval", world.Step, "how often Prometheus scrapes, in whole 15 s")
	f.Float64Var(&o.world.ScrapeLoss, "scrape-loss", 0, "part of the scrapes that fails, 0 to 0.9")
	f.DurationVar(&o.world.WarmUp, "warm-up", 0, "virtual time before the day begins to count (default 30m with a controller)")
	f.StringSliceVar(&o.world.Processes, "processes", nil, "machines on which pods with a command run it, as processes of this one; needs --speed 1")
	f.BoolVar(&o.world.NoAgents, "no-agents", false, "leave the machines without node agents: whole machines are lent, and no socket")
	f.StringVar(&o.world.Scheduler, "scheduler", world.SchedulerSpringtide, "who places pods: springtide, or kube for kube-scheduler")
	f.BoolVar(&o.realNode, "real-node", false, "run the first machine with a real kubelet, containerd and the node agent, in a virtual machine (a checkout, QEMU; minutes when new)")
	f.BoolVar(&o.headless, "headless", os.Getenv("HEADLESS") != "", "plain lines instead of the live view")
	f.StringVar(&o.report, "report", "", "file to write the report to as JSON")
	f.StringVar(&o.picture, "picture", "", "file to draw the live view to as SVG, as it stands at the end")
	f.StringVar(&o.world.Springtide, "springtide", "", "the springtide binary (default: springtide next to this one)")
	f.BoolVar(&o.world.NoJudge, "no-judge", false, "run without the judge of the promises")
	f.BoolVar(&o.noController, "no-controller", false, "run without springtide: a static day")
	f.StringVar(&o.world.Mode, "mode", "Auto", "mode of every service and pool: Observe, Recommend or Auto")
	f.StringVar(&o.world.Dir, "data", "", "directory for the lab's data (default: a temporary one)")
	f.BoolVar(&o.world.Keep, "keep", false, "keep the data and logs at the end")
	f.StringVar(&o.world.Plane.KWOKBinary, "kwok", "", "the kwok binary (default: kwok next to this one)")
	f.BoolVar(&o.verbose, "verbose", false, "say where wall time and memory went")
	return cmd
}

func (o *demoOptions) run(ctx context.Context) error {
	if !(o.days > 0) {
		return fmt.Errorf("--days %v: want more than 0", o.days)
	}
	if i := o.world.ScrapeInterval; i < world.Step || i%world.Step != 0 {
		return fmt.Errorf("--scrape-interval %v: want 15s, 30s, 45s, 60s, or more of 15 s", i)
	}
	if l := o.world.ScrapeLoss; !(l >= 0 && l <= 0.9) {
		return fmt.Errorf("--scrape-loss %v: want 0 to 0.9", l)
	}
	if len(o.world.Processes) > 0 && o.world.Speed != 1 {
		return fmt.Errorf("--speed %v: processes live by the wall: want --speed 1 with --processes", o.world.Speed)
	}
	if o.begin != "peak" && o.begin != "midnight" {
		return fmt.Errorf("--begin %q: want peak or midnight", o.begin)
	}
	if s := o.world.Scheduler; s != world.SchedulerSpringtide && s != world.SchedulerKube {
		return fmt.Errorf("--scheduler %q: want springtide or kube", s)
	}
	o.world.AtPeak = o.begin == "peak"
	if err := o.findSpringtide(); err != nil {
		return err
	}
	debug.SetGCPercent(memoryForCPU)
	screen := view.New(os.Stdout, o.headless)
	defer screen.Close()
	o.world.Length = time.Duration(o.days * float64(24*time.Hour)).Round(world.Step)
	o.world.Progress = screen.Progress
	o.world.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.world.OnStep = func(w *world.World) {
		if o.picture != "" && screen.NoteDue(w.Now()) {
			screen.Note(w.View())
		}
		if screen.Due(w.Now()) {
			screen.Show(w.View())
		}
	}
	if err := o.prepareRealNode(ctx, screen.Progress); err != nil {
		return stopped(ctx, err)
	}
	w, err := world.New(ctx, o.world)
	if err != nil {
		return stopped(ctx, err)
	}
	if len(o.world.Processes) > 0 {
		screen.Progress("pods to run are made with kubectl --kubeconfig " + w.Plane().Kubeconfig())
	}
	screen.Hints = o.hints(w)
	for _, h := range screen.Hints {
		screen.Progress("in another terminal: " + h)
	}
	report, err := w.Run(ctx)
	screen.Close()
	if ctx.Err() != nil {
		report, err = o.soFar(w), nil
	}
	var picture []byte
	if o.picture != "" {
		picture = screen.SVG(w.View())
	}
	if o.verbose {
		printUsage(w)
	}
	if o.world.Keep {
		fmt.Println("data and logs are kept in", w.Dir())
	}
	if err = stopped(ctx, errors.Join(err, w.Close())); err != nil || report == nil {
		return err
	}
	fmt.Printf("\n%s\n", report.Text(screen.Width()))
	printFresh(w.Fresh())
	if o.verbose {
		fmt.Printf("%+v\n", w.Spent())
	}
	if o.picture != "" {
		if err := os.WriteFile(o.picture, picture, 0o644); err != nil {
			return fmt.Errorf("draw the run: %w", err)
		}
	}
	return writeReport(o.report, report)
}

// prepareRealNode builds what the real machine starts from.
func (o *demoOptions) prepareRealNode(ctx context.Context, progress func(string)) error {
	if !o.realNode {
		return nil
	}
	if err := node.Missing(); err != nil {
		return err
	}
	root, err := checkout()
	if err != nil {
		return err
	}
	build := node.BuildOptions{Root: root, Progress: progress}
	img, err := node.Build(ctx, build)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	archive, err := node.AgentImage(ctx, build, filepath.Join(cache, "springtide", "node", "images"))
	if err != nil {
		return err
	}
	o.world.RealNode = &world.RealNode{Image: img, Agent: archive}
	return nil
}

// checkout is the project's directory: the nearest one with its module file above this binary or the working directory.
func checkout() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(self), wd} {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(text), "module github.com/springtide/springtide\n") {
				return dir, nil
			}
		}
	}
	return "", errors.New("--real-node builds a kubelet from the project's checkout, which is neither above this binary nor above the working directory; run it from there")
}

// hints are commands that show the running world from another terminal.
func (o *demoOptions) hints(w *world.World) []string {
	env := "export KUBECONFIG=" + w.Plane().ShortKubeconfig()
	if o.world.Springtide == "" {
		return []string{env, "kubectl get nodes", "kubectl get deployments -A", "kubectl get jobs -A"}
	}
	cli := o.world.Springtide
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, cli); err == nil && len(rel) < len(cli) {
			cli = rel
		}
	}
	hints := []string{env, cli + " pools", cli + " loans", cli + " services -A"}
	if name := w.AnyService(); name != "" {
		hints = append(hints, cli+" whatif service "+name+" --prometheus "+w.PrometheusURL())
	}
	return hints
}

// soFar is the report of a run that was stopped; nil when nothing was counted yet.
func (o *demoOptions) soFar(w *world.World) *model.Report {
	counted := w.Counted()
	if counted <= 0 {
		fmt.Println("\nstopped in the warm-up: nothing was counted yet")
		return nil
	}
	fmt.Printf("\nstopped after %s of %s; the report so far:\n", counted.Round(time.Minute), o.world.Length)
	if _, err := w.Judge(); err != nil {
		fmt.Fprintln(os.Stderr, "the judge:", err)
	}
	report := w.Report()
	return &report
}

// printUsage prints the memory of the lab at the end of the day, and the processor time that the day took, by component.
func printUsage(w *world.World) {
	memory, cpu := int64(0), time.Duration(0)
	for _, u := range w.Usage() {
		fmt.Printf("%-24s %6d MiB %8.1f CPU-s\n", u.Component, u.Memory>>20, u.CPU.Seconds())
		memory += u.Memory
		cpu += u.CPU
	}
	fmt.Printf("%-24s %6d MiB %8.1f CPU-s for %s: %.1f CPU-minutes a virtual day\n", "in all", memory>>20, cpu.Seconds(), w.Counted(),
		cpu.Minutes()*24/max(w.Counted().Hours(), 0.01))
}

// printFresh prints for how many looks at a service the controller had fresh data, where the scrapes made that a question.
func printFresh(f world.Fresh) {
	if f.Looks == 0 {
		return
	}
	fmt.Printf("fresh data           in %d of %d looks at a service, of each service in at least %d of %d\n", f.Fresh, f.Looks, f.LeastFresh, f.LeastLooks)
	for _, name := range slices.Sorted(maps.Keys(f.Lacked)) {
		fmt.Printf("  not fresh in %d: %s\n", f.Lacked[name], name)
	}
}

// findSpringtide settles which controller runs.
func (o *demoOptions) findSpringtide() error {
	if o.noController {
		o.world.Springtide = ""
		return nil
	}
	if o.world.Springtide == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the own executable: %w", err)
		}
		o.world.Springtide = filepath.Join(filepath.Dir(self), "springtide")
	}
	path, err := filepath.Abs(o.world.Springtide)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return fmt.Errorf("%w: build it with `make build`, name it with --springtide, or leave it out with --no-controller", err)
	}
	o.world.Springtide = path
	return nil
}

// stopped makes an end by Ctrl-C a good one.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "stopped")
		return nil //nolint:nilerr // what a stop broke off is no failure
	}
	return err
}

// writeReport writes the report as JSON; nowhere when path is empty.
func writeReport(path string, r *model.Report) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
