package main

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
	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/validate/lines"
)

// controllerNamespace is where the controller lives unless it was installed elsewhere.
const controllerNamespace = "springtide-system"

// cliOptions are the flags that operators' verbs share. Each verb takes those that mean something to it.
type cliOptions struct {
	kubeconfig, context string
	namespace           string
	// system is the controller's namespace, for verbs whose -n is another one.
	system        string
	allNamespaces bool
	selector      string
	sortBy        string
	output        string
	store         string
	controllerURL string
	watch         bool
	dryRun        string
	// as, asGroups and token say as whom.
	as       string
	asGroups []string
	token    string
	// schedulerNamespace is that of the bundled scheduler.
	schedulerNamespace string

	// connect makes the clients; tests put others in.
	connect func(*cliOptions) (*clients, error)
}

// clients reach one cluster.
type clients struct {
	config *rest.Config
	// namespace is that of the context.
	namespace string
	core      kubernetes.Interface
	dyn       dynamic.Interface
	// memory answers in place of the controller; tests put one in.
	memory memory
	clocks
	// store is where the controller keeps what it remembers, where the kubeconfig says so; --store comes first.
	store string
	// giveBack returns an adopted HPA to its owner.
	giveBack func(context.Context, fleet.Name) error
	// facts is the controller's view of the cluster.
	facts func(context.Context) (*fleet.Snapshot, error)
}

// operatorCommands are the verbs of operators: everything but `run`, `forecast` and `backtest`.
func operatorCommands() []*cobra.Command { return operatorCommandsOn(connect) }

func operatorCommandsOn(connect func(*cliOptions) (*clients, error)) []*cobra.Command {
	o := func() *cliOptions { return &cliOptions{connect: connect} }
	return []*cobra.Command{
		newValidateCommand(o()), newServicesCommand(o()), newPoolsCommand(o()), newQuotasCommand(o()), newLoansCommand(o()), newJobsCommand(o()),
		newNodesCommand(o()), newFestivalsCommand(o()), newRecallCommand(o()), newExplainCommand(o()),
		newFestivalCommand(o()), newAdoptCommand(o()), newReleaseCommand(o()), newPauseCommand(o()), newResumeCommand(o()),
		newFreezeCommand(o()), newThawCommand(o()), newUninstallCommand(o()), newUpgradeCommand(o()), newNodeCommand(o()), newDoctorCommand(o()), newRulesCommand(o()), newVersionCommand(o()),
	}
}

// cluster adds the flags that say which cluster is meant.
func (o *cliOptions) cluster(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig to use; $KUBECONFIG or ~/.kube/config when empty, and inside of a cluster the pod's own account")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig; its current one when empty")
	f.StringVar(&o.as, "as", "", "user to act as, as kubectl's")
	f.StringArrayVar(&o.asGroups, "as-group", nil, "group to act as; may be given again")
	f.StringVar(&o.token, "token", "", "bearer token to log in with, in place of the kubeconfig's")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

// contexts lists the contexts of the kubeconfig; none when it cannot be read.
func (o *cliOptions) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

func (o *cliOptions) namespaced(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", usage)
	o.completesNamespaces(cmd)
}

func (o *cliOptions) completesNamespaces(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := o.connect(o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := c.core.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
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

// formats adds -o.
func (o *cliOptions) formats(cmd *cobra.Command, allowed ...string) {
	cmd.Flags().StringVarP(&o.output, "output", "o", allowed[0], "output: "+strings.Join(allowed, ", "))
	check := func(*cobra.Command, []string) error {
		if !slices.Contains(allowed, o.output) {
			return usageError{fmt.Errorf("-o %s: want %s", o.output, strings.Join(allowed, ", "))}
		}
		return nil
	}
	before(cmd, check)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// The values of --dry-run, which are kubectl's.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func (o *cliOptions) dry(cmd *cobra.Command) {
	allowed := []string{dryRunNone, dryRunClient, dryRunServer}
	f := cmd.Flags()
	f.StringVar(&o.dryRun, "dry-run", dryRunNone, "client: say what would be written; server: let the API server judge it without keeping it")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	before(cmd, func(*cobra.Command, []string) error {
		if !slices.Contains(allowed, o.dryRun) {
			return usageError{fmt.Errorf("--dry-run=%s: want %s", o.dryRun, strings.Join(allowed, ", "))}
		}
		return nil
	})
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// serverDryRun is what goes into the options of a write.
func (o *cliOptions) serverDryRun() []string {
	if o.dryRun == dryRunServer {
		return []string{"All"}
	}
	return nil
}

func (o *cliOptions) history(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.store, "store", "", "read the controller's store itself (sqlite://PATH or postgres://...) in place of asking the controller")
	f.StringVar(&o.controllerURL, "controller", "", "URL of the controller's read API; its pod, through the API server, when empty")
	f.StringVar(&o.system, "controller-namespace", controllerNamespace, "namespace of the controller")
}

// completes offers the names of objects of a cluster to the shell, for a verb that takes one.
func (o *cliOptions) completes(cmd *cobra.Command, plural string) { o.completion(cmd, plural, 1) }

// completesAll is completes for a verb that takes any number.
func (o *cliOptions) completesAll(cmd *cobra.Command, plural string) {
	o.completion(cmd, plural, 1<<30)
}

// completion stays silent when the cluster cannot be asked.
func (o *cliOptions) completion(cmd *cobra.Command, plural string, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := o.connect(o)
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace := "" // of what is looked for, not of the controller
		if slices.Contains([]string{services, jobs, hpas}, plural) {
			namespace = o.namespace
		}
		found, err := c.names(cmd.Context(), plural, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(found, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// required marks a flag as one that must be given. Cobra's own check would not count as wrong usage.
func required(cmd *cobra.Command, flag string) {
	_ = cmd.MarkFlagRequired(flag)
	before(cmd, func(cmd *cobra.Command, _ []string) error {
		if f := cmd.Flags().Lookup(flag); !f.Changed {
			return usageError{fmt.Errorf("--%s is required: %s", flag, f.Usage)}
		}
		return nil
	})
}

// before runs a check in front of a command, after those that are there already.
func before(cmd *cobra.Command, check func(*cobra.Command, []string) error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check(c, args)
	}
}

// connect reads the kubeconfig. The QPS is that of a person at a terminal whose question needs a few dozen reads.
func connect(o *cliOptions) (*clients, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	how := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context,
		AuthInfo: clientcmdapi.AuthInfo{Token: o.token, Impersonate: o.as, ImpersonateGroups: o.asGroups}})
	cfg, err := how.ClientConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("no cluster: %w: give --kubeconfig, or run inside of a cluster", err)}
	}
	namespace, _, err := how.Namespace()
	if err != nil {
		return nil, usageError{fmt.Errorf("the context has no namespace: %w: give -n", err)}
	}
	raw, err := how.RawConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("no cluster: %w", err)}
	}
	lab, err := ofLab(&raw, o.context)
	if err != nil {
		return nil, usageError{err}
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
	return &clients{config: cfg, namespace: namespace, core: core, dyn: dyn, clocks: times, store: lab.Store,
		giveBack: func(ctx context.Context, hpa fleet.Name) error {
			cluster, err := observer(cfg)
			if err != nil {
				return err
			}
			return cluster.GiveBack(ctx, hpa)
		},
		facts: func(ctx context.Context) (*fleet.Snapshot, error) {
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
	return kube.New(cfg, kube.Options{Namespace: controllerNamespace, Identity: "springtide-cli", Clock: clock.NewWall(),
		Log: slog.New(slog.DiscardHandler)})
}

// exactly is cobra.ExactArgs with an error that counts as wrong usage and says what is wanted.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := strings.Join(names, " ")
		if want == "" {
			want = "no arguments"
		}
		return usageError{fmt.Errorf("%s takes %s (see %s --help)", cmd.CommandPath(), want, cmd.CommandPath())}
	}
}

// errFound ends a verb that did its work and found something: exit code 1 with a summary.
func errFound(format string, args ...any) error { return fmt.Errorf(format, args...) }

// didYouMean names the known word that is nearest to one that is not known.
func didYouMean(word string, known []string) string {
	if near := lines.Nearest(word, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// frozen is why all actions are held; empty when they are not, or when the caller has no right to know.
func (c *clients) frozen(ctx context.Context) string {
	ns, err := c.core.CoreV1().Namespaces().Get(ctx, controllerNamespace, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ns.Annotations[v1alpha1.AnnotationFreeze]
}
