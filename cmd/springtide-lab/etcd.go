package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcd is one etcd member for a plane that lives no longer than its process: nothing is synced to disk.
func etcd() *cobra.Command {
	var dir, client, peer string
	cmd := &cobra.Command{
		Use:          "etcd",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := etcdConfig(dir, client, peer)
			if err != nil {
				return err
			}
			stop := make(chan os.Signal, 1)
			signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
			server, err := embed.StartEtcd(cfg)
			if err != nil {
				return fmt.Errorf("start etcd: %w", err)
			}
			defer server.Close()
			select {
			case <-stop:
				return nil
			case err := <-server.Err():
				return fmt.Errorf("etcd: %w", err)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "data-dir", "", "directory of the data")
	flags.StringVar(&client, "listen-client-url", "", "URL to serve clients on")
	flags.StringVar(&peer, "listen-peer-url", "", "URL to serve peers on")
	return cmd
}

// etcdConfig trades durability for speed: the lab's data is thrown away at the end, and a virtual day in five minutes
// writes as much as a real cluster does in a day.
func etcdConfig(dir, client, peer string) (*embed.Config, error) {
	clientURL, err := url.Parse(client)
	if err != nil {
		return nil, fmt.Errorf("--listen-client-url: %w", err)
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return nil, fmt.Errorf("--listen-peer-url: %w", err)
	}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// 8 GiB is etcd's own upper advice; with the API server's compaction every five minutes a replayed week stays far below.
	cfg.QuotaBackendBytes = 8 << 30
	// Without it every request is logged as a slow one: only etcd's own command line fills in this default.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{"stderr"}
	return cfg, nil
}
