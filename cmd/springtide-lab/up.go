package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/lab/plane"
)

// up starts the control plane alone and keeps it until Ctrl-C.
func up() *cobra.Command {
	var opts plane.Options
	var scheduler string
	var extra []string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the control plane alone and print its kubeconfig; Ctrl-C ends it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin := time.Now()
			for _, e := range extra {
				component, arg, ok := strings.Cut(e, "=")
				if !ok {
					return fmt.Errorf("--component-arg %q: want component=--flag=value", e)
				}
				if opts.ExtraArgs == nil {
					opts.ExtraArgs = map[string][]string{}
				}
				opts.ExtraArgs[component] = append(opts.ExtraArgs[component], arg)
			}
			switch scheduler {
			case "springtide":
				opts.Scheduler = plane.Springtide
			case "kube":
				opts.Scheduler = plane.Scheduler
			default:
				return fmt.Errorf("--scheduler %q: want springtide or kube", scheduler)
			}
			opts.Progress = func(line string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%5.1fs  %s\n", time.Since(begin).Seconds(), line)
			}
			p, err := plane.Start(cmd.Context(), opts)
			if err != nil {
				return err
			}
			defer func() { _ = p.Stop() }() // its errors are in the components' logs
			table := tabwriter.NewWriter(cmd.ErrOrStderr(), 0, 0, 2, ' ', tabwriter.AlignRight)
			total := int64(0)
			for _, m := range p.Usage() {
				fmt.Fprintf(table, "%s\t%d MiB\t\n", m.Component, m.Memory>>20)
				total += m.Memory
			}
			fmt.Fprintf(table, "in all\t%d MiB\t\n", total>>20)
			if err := table.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "no machine is in it, so pods stay Pending; `make demo` has machines and pods that run. A machine that pods are placed on, without a kubelet that runs them:\n"+oneMachine)
			fmt.Fprintln(cmd.ErrOrStderr(), "logs in", p.Logs(), "· Ctrl-C ends it")
			fmt.Fprintf(os.Stdout, "export KUBECONFIG=%s\n", p.ShortKubeconfig())
			return p.Wait(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Dir, "dir", "", "directory under which the plane makes one of its own (default: the temporary directory)")
	flags.BoolVar(&opts.Keep, "keep", false, "leave data and logs in place at the end")
	flags.StringArrayVar(&extra, "component-arg", nil, "a flag more for one component, as in kube-scheduler=--config=FILE; may be given several times")
	flags.StringVar(&scheduler, "scheduler", "springtide", "who places pods: springtide, or kube for kube-scheduler")
	flags.StringVar(&opts.KWOKBinary, "kwok", "", "the kwok binary (default: kwok next to this one)")
	return cmd
}

// oneMachine makes a machine that kwok keeps alive. No kubelet is behind it.
const oneMachine = `  kubectl create -f - <<< '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0", "annotations": {"` + plane.NodeAnnotation + `": "` + plane.NodeAnnotationValue + `"}},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}'`
