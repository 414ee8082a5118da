// Package cluster is the way of operators' verbs to a cluster: the flags they share, clients and clocks, our objects and what is installed, the
// controller's store, and how a change is written.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/kube"
)

// ControllerNamespace is where the controller lives unless it was installed elsewhere.
const ControllerNamespace = "springtide-system"

// Options are the flags that operators' verbs share. Each verb takes those that mean something to it.
type Options struct {
	Kubeconfig, context string
	Namespace           string
	// System is the controller's namespace, for verbs whose -n is another one.
	System        string
	AllNamespaces bool
	Selector      string
	SortBy        string
	Output        string
	Store         string
	controllerURL string
	Watch         bool
	DryRun        string
	// as, asGroups and token say as whom.
	as       string
	asGroups []string
	token    string
	// SchedulerNamespace is that of the bundled scheduler.
	SchedulerNamespace string

	// Connect makes the clients; tests put others in.
	Connect Connector
}

// Clients reach one cluster.
type Clients struct {
	config *rest.Config
	// Namespace is that of the context.
	Namespace string
	Core      kubernetes.Interface
	Dyn       dynamic.Interface
	// memory answers in place of the controller; tests put one in.
	memory Memory
	Clocks
	// Store is where the controller keeps what it remembers, where the kubeconfig says so; --store comes first.
	Store string
	// GiveBack returns an adopted HPA to its owner.
	GiveBack func(context.Context, fleet.Name) error
	// Facts is the controller's view of the cluster.
	Facts func(context.Context) (*fleet.Snapshot, error)
}

// Connector makes the clients of the cluster that the flags name.
type Connector func(*Options) (*Clients, error)

// Verb makes the command of one verb, with flags of its own.
type Verb func(*Options) *cobra.Command

// Commands makes the commands of verbs on the clusters of a connector.
func Commands(connect Connector, verbs ...Verb) []*cobra.Command {
	out := make([]*cobra.Command, len(verbs))
	for i, v := range verbs {
		out[i] = v(&Options{Connect: connect})
	}
	return out
}

// Cluster adds the flags that say which cluster is meant.
func (o *Options) Cluster(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig to use; $KUBECONFIG or ~/.kube/config when empty, and inside of a cluster the pod's own account")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig; its current one when empty")
	f.StringVar(&o.as, "as", "", "user to act as, as kubectl's")
	f.StringArrayVar(&o.asGroups, "as-group", nil, "group to act as; may be given again")
	f.StringVar(&o.token, "token", "", "bearer token to log in with, in place of the kubeconfig's")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

// contexts lists the contexts of the kubeconfig; none when it cannot be read.
func (o *Options) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// Namespaced adds -n with its own usage, and completes it.
func (o *Options) Namespaced(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", usage)
	o.completesNamespaces(cmd)
}

func (o *Options) completesNamespaces(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := o.Connect(o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := c.Core.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]string, len(found.Items))
		for i := range found.Items {
			names[i] = found.Items[i].Name
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// Formats adds -o.
func (o *Options) Formats(cmd *cobra.Command, allowed ...string) {
	cmd.Flags().StringVarP(&o.Output, "output", "o", allowed[0], "output: "+strings.Join(allowed, ", "))
	check := func(*cobra.Command, []string) error {
		if !slices.Contains(allowed, o.Output) {
			return usage.Error{Err: fmt.Errorf("-o %s: want %s", o.Output, strings.Join(allowed, ", "))}
		}
		return nil
	}
	usage.Before(cmd, check)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// The values of --dry-run, which are kubectl's.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// Dry adds --dry-run.
func (o *Options) Dry(cmd *cobra.Command) {
	allowed := []string{DryRunNone, DryRunClient, DryRunServer}
	f := cmd.Flags()
	f.StringVar(&o.DryRun, "dry-run", DryRunNone, "client: say what would be written; server: let the API server judge it without keeping it")
	f.Lookup("dry-run").NoOptDefVal = DryRunClient
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if !slices.Contains(allowed, o.DryRun) {
			return usage.Error{Err: fmt.Errorf("--dry-run=%s: want %s", o.DryRun, strings.Join(allowed, ", "))}
		}
		return nil
	})
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// ServerDryRun is what goes into the options of a write.
func (o *Options) ServerDryRun() []string {
	if o.DryRun == DryRunServer {
		return []string{"All"}
	}
	return nil
}

// History adds the flags that say where the controller's store is read.
func (o *Options) History(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "", "read the controller's store itself (sqlite://PATH or postgres://...) in place of asking the controller")
	f.StringVar(&o.controllerURL, "controller", "", "URL of the controller's read API; its pod, through the API server, when empty")
	f.StringVar(&o.System, "controller-namespace", ControllerNamespace, "namespace of the controller")
}

// Completes offers the names of objects of a cluster to the shell, for a verb that takes one.
func (o *Options) Completes(cmd *cobra.Command, plural string) { o.completion(cmd, plural, 1) }

// CompletesAll is completes for a verb that takes any number.
func (o *Options) CompletesAll(cmd *cobra.Command, plural string) {
	o.completion(cmd, plural, 1<<30)
}

// completion stays silent when the cluster cannot be asked.
func (o *Options) completion(cmd *cobra.Command, plural string, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := o.Connect(o)
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace := "" // of what is looked for, not of the controller
		if slices.Contains([]string{Services, Jobs, HPAs}, plural) {
			namespace = o.Namespace
		}
		found, err := c.Names(cmd.Context(), plural, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(found, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// Connect reads the kubeconfig. The QPS is that of a person at a terminal whose question needs a few dozen reads.
func Connect(o *Options) (*Clients, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	how := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context,
		AuthInfo: clientcmdapi.AuthInfo{Token: o.token, Impersonate: o.as, ImpersonateGroups: o.asGroups}})
	cfg, err := how.ClientConfig()
	if err != nil {
		return nil, usage.Error{Err: fmt.Errorf("no cluster: %w: give --kubeconfig, or run inside of a cluster", err)}
	}
	namespace, _, err := how.Namespace()
	if err != nil {
		return nil, usage.Error{Err: fmt.Errorf("the context has no namespace: %w: give -n", err)}
	}
	raw, err := how.RawConfig()
	if err != nil {
		return nil, usage.Error{Err: fmt.Errorf("no cluster: %w", err)}
	}
	lab, err := ofLab(&raw, o.context)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	times, err := clocksOf(lab)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = 50, 100, "springtide-cli"
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the client of our kinds: %w", err)
	}
	return &Clients{config: cfg, Namespace: namespace, Core: core, Dyn: dyn, Clocks: times, Store: lab.Store,
		GiveBack: func(ctx context.Context, hpa fleet.Name) error {
			cluster, err := observer(cfg)
			if err != nil {
				return err
			}
			return cluster.GiveBack(ctx, hpa)
		},
		Facts: func(ctx context.Context) (*fleet.Snapshot, error) {
			cluster, err := observer(cfg)
			if err != nil {
				return nil, err
			}
			// The watches end with the answer; a right that is missing shows as a read that never ends.
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := cluster.Start(ctx); err != nil {
				return nil, err
			}
			return cluster.Snapshot(ctx)
		},
	}, nil
}

// observer is the controller's own view of the cluster, for verbs that need what it sees or does. It stands for no election and so writes
// nothing on its own.
func observer(cfg *rest.Config) (*kube.Cluster, error) {
	return kube.New(cfg, kube.Options{Namespace: ControllerNamespace, Identity: "springtide-cli", Clock: clock.NewWall(),
		Log: slog.New(slog.DiscardHandler)})
}

// Frozen is why all actions are held; empty when they are not, or when the caller has no right to know.
func (c *Clients) Frozen(ctx context.Context) string {
	ns, err := c.Core.CoreV1().Namespaces().Get(ctx, ControllerNamespace, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ns.Annotations[v1alpha1.AnnotationFreeze]
}
