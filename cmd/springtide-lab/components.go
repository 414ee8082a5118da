package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics in the components' registries
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/scheduler/host/command"
)

// components are the hidden subcommands that run the control plane's parts.
//
// Flags, feature gates and metric registries of Kubernetes are global to a process, so each component is a process of its
// own; and its command is made only when it is the one to run, because making two of them in one process clashes.
func components() []*cobra.Command {
	return []*cobra.Command{
		component(plane.Etcd, etcd),
		component(plane.APIServer, apiserver.NewAPIServerCommand),
		component(plane.ControllerManager, controllers),
		component(plane.Springtide, command.New),
		component(plane.Scheduler, func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	}
}

// component wraps a command that is made late and parses its own flags.
func component(name string, create func() *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			// Each component has its own way with signals (the controller manager ends by their default action), so the
			// handlers of the visible commands must not stand in between.
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			cmd := create()
			cmd.SetArgs(args)
			// The components end by signal and print their own errors; only the code is left to pass on.
			os.Exit(cli.Run(cmd))
		},
	}
}
