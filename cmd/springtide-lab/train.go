package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/lab/train/ps"
)

// trainPS is the trainer with parameter servers that pods of the lab run.
func trainPS() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train-ps",
		Short: "A small trainer with parameter servers, for pods of the lab to run",
	}
	cmd.AddCommand(trainServer(), trainWorker())
	return cmd
}

// trainServer holds parameters until it is asked to stop.
func trainServer() *cobra.Command {
	var servers []string
	var which int
	var rate float64
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Hold a part of the parameters",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := ps.NewServer(which, len(servers), rate, os.Stdout)
			if err != nil {
				return err
			}
			h := &http.Server{Addr: servers[which], Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
			context.AfterFunc(cmd.Context(), func() { _ = h.Close() }) // the caller then asks again
			if err := h.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("server %d: %w", which, err)
			}
			os.Exit(stopRequested)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&servers, "servers", nil, "HOST:PORT of every server")
	f.IntVar(&which, "server", 0, "which of them this is, counted from 0")
	f.Float64Var(&rate, "rate", 0.0005, "learning rate")
	return cmd
}

// stopRequested is the exit code after SIGTERM. With 0 a Job would take its work for done and start no pod again.
const stopRequested = 128 + int(syscall.SIGTERM)

// trainWorker takes steps until it is asked to stop.
func trainWorker() *cobra.Command {
	w := ps.Worker{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Take steps, answer notices, leave on SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.Run(cmd.Context()); err != nil {
				return err
			}
			os.Exit(stopRequested)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.Name, "name", "worker", "name of this worker, unlike all others")
	f.StringSliceVar(&w.Servers, "servers", nil, "HOST:PORT of every server")
	f.IntVar(&w.Batch, "batch", 64, "examples in a step")
	f.DurationVar(&w.Pause, "pause", 100*time.Millisecond, "rest after each step")
	f.StringVar(&w.Notice.File, "notice", "notice", "file with the pod's notice")
	f.StringVar(&w.Notice.Answers, "answers", ".", "directory for the acknowledgement")
	f.DurationVar(&w.Notice.Patience, "patience", 2*time.Minute, "how long past a notice's deadline the eviction is waited for")
	return cmd
}
