// Package adopt puts autoscalers of others under a forecast, and gives them back.
package adopt

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/adopt/foreign"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/usage"
)

// adoption is how adopt was called.
type adoption struct {
	kind        string
	utilisation int32
	zone        string
	all         bool
	takeOver    bool
	acceptLost  bool
}

// NewCommand makes `springtide adopt`.
func NewCommand(o *cluster.Options) *cobra.Command {
	var a adoption
	cmd := &cobra.Command{
		Use:   "adopt NAME | adopt --all",
		Short: "Put an existing autoscaler under a forecast, without a gap",
		Long: "Write an ElasticService in mode Observe for the target of an autoscaler that is there. The autoscaler stays in charge. Look at the forecast\n" +
			"first (springtide services, springtide explain service), then set mode Auto.\n\n" +
			"A HorizontalPodAutoscaler (the default) gives its bounds and its CPU target; actuation is HPAFloor: in mode Auto Springtide raises its\n" +
			"minReplicas before the flood and lowers it again. A KEDA ScaledObject (--kind scaledobject) gives its bounds, and its cpu, prometheus\n" +
			"and cron triggers; --take-over then pauses it (KEDA's own annotation) and sets mode Auto. A CronHorizontalPodAutoscaler\n" +
			"(--kind cronhpa) gives a window for each of its jobs; delete it before you set mode Auto.\n\n" +
			"Each field that changes replicas and that an ElasticService cannot express is listed as lost. With something lost --take-over needs\n" +
			"--accept-lost.\n\n" +
			"--all adopts every autoscaler of the namespace (-A: of all) whose target has no ElasticService yet; with --dry-run it lists what would be\n" +
			"done, and why some cannot be. springtide release gives all of them back.",
		Example: "  springtide adopt shop/cart --dry-run=client\n  springtide adopt --all -A --dry-run\n  springtide adopt --kind scaledobject shop/mail --take-over",
		Args: func(cmd *cobra.Command, args []string) error {
			if a.all {
				return usage.Exactly()(cmd, args)
			}
			return usage.Exactly("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			if a.all {
				return adoptAll(o, cmd, c, &a)
			}
			name, err := o.NameOf(c, args[0])
			if err != nil {
				return err
			}
			return adoptOne(o, cmd, c, &a, name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.kind, "kind", takeover.HPA, "what NAME is: hpa, scaledobject or cronhpa")
	f.Int32Var(&a.utilisation, "utilisation", 0, "CPU utilisation in percent of the requests that the SLO allows; the autoscaler's CPU target when 0")
	f.StringVar(&a.zone, "time-zone", "UTC", "IANA zone by which a cronhpa's jobs run: that of its controller")
	f.BoolVar(&a.all, "all", false, "adopt every autoscaler of the namespace whose target has no ElasticService yet")
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "with --all: in all namespaces")
	f.BoolVar(&a.takeOver, "take-over", false, "of a scaledobject: pause it, and set mode Auto")
	f.BoolVar(&a.acceptLost, "accept-lost", false, "with --take-over: do so though fields of the scaledobject are lost, which adopt lists")
	o.Changing(cmd)
	o.Completes(cmd, cluster.HPAs)
	kinds := []string{takeover.HPA, takeover.ScaledObject, takeover.CronHPA}
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	usage.Before(cmd, func(*cobra.Command, []string) error {
		switch {
		case !slices.Contains(kinds, a.kind):
			return usage.Error{Err: fmt.Errorf("--kind %s: want %s%s", a.kind, strings.Join(kinds, ", "), usage.DidYouMean(a.kind, kinds))}
		case a.takeOver && a.all:
			return usage.Error{Err: fmt.Errorf("--take-over is for one NAME: look at each before it is taken over")}
		case a.acceptLost && !a.takeOver:
			return usage.Error{Err: fmt.Errorf("--accept-lost is for --take-over: without it nothing is given up")}
		case a.takeOver && a.kind != takeover.ScaledObject:
			return usage.Error{Err: fmt.Errorf("--take-over is for --kind scaledobject: an HPA is kept, and a CronHorizontalPodAutoscaler cannot be paused")}
		}
		return nil
	})
	return cmd
}

func (a *adoption) options() foreign.Options {
	return foreign.Options{Utilisation: a.utilisation, Zone: a.zone}
}

func adoptOne(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, a *adoption, name fleet.Name) error {
	adopted, err := takeover.Read(cmd.Context(), c, a.kind, name, a.options())
	if err != nil {
		return err
	}
	there, err := cluster.List[v1alpha1.ElasticService](cmd.Context(), c, cluster.Services, name.Namespace)
	if err != nil {
		return err
	}
	s := adopted.Service
	owner := owners(there).name(s)
	for _, n := range remarks(adopted) {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	switch {
	case a.takeOver && len(adopted.Lost) > 0 && !a.acceptLost:
		return usage.Found("%s %s was not taken over: %s would be lost (above): add --accept-lost to do without", a.kind, name, cell.Count(len(adopted.Lost), "field"))
	case a.takeOver:
		return takeOver(o, cmd, c, name, s, owner)
	case owner != nil:
		return adoptedBefore(owner, s)
	}
	return createService(o, cmd, c, s)
}

// remarks are what an operator should know of an adoption.
func remarks(a *foreign.Adoption) []string {
	var out []string
	for _, l := range a.Lost {
		out = append(out, "lost: "+l)
	}
	return append(out, a.Notes...)
}

// ownership says which services there are, by their names and by their targets.
type ownership struct {
	names, targets map[string]*v1alpha1.ElasticService
}

func owners(there []v1alpha1.ElasticService) ownership {
	o := ownership{map[string]*v1alpha1.ElasticService{}, map[string]*v1alpha1.ElasticService{}}
	for i := range there {
		o.take(&there[i])
	}
	return o
}

func (o ownership) take(s *v1alpha1.ElasticService) {
	o.names[s.Namespace+"/"+s.Name] = s
	if key := targetKey(s); o.targets[key] == nil || s.Name == s.Spec.TargetRef.Name {
		o.targets[key] = s // of two the one that has the target's name
	}
}

// targetKey is a target without its version, which may be written in more than one way.
func targetKey(s *v1alpha1.ElasticService) string {
	group, _, _ := strings.Cut(s.Spec.TargetRef.APIVersion, "/")
	return strings.Join([]string{s.Namespace, group, s.Spec.TargetRef.Kind, s.Spec.TargetRef.Name}, "/")
}

// name gives a service a name that is free: that of its target, with its kind where another service has that, and with a number where that
// is taken too. If its target has a service, that is returned.
func (o ownership) name(s *v1alpha1.ElasticService) *v1alpha1.ElasticService {
	if owner := o.targets[targetKey(s)]; owner != nil {
		return owner
	}
	for i, base := 1, s.Name; o.names[s.Namespace+"/"+s.Name] != nil; i++ {
		s.Name = base + "-" + strings.ToLower(s.Spec.TargetRef.Kind)
		if i > 1 {
			s.Name = fmt.Sprintf("%s-%d", s.Name, i)
		}
	}
	return nil
}

// adoptAll adopts what can be, or says what would be adopted.
func adoptAll(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, a *adoption) error {
	ctx, namespace := cmd.Context(), o.Namespace
	if namespace == "" && !o.AllNamespaces {
		namespace = c.Namespace
	}
	if o.AllNamespaces {
		namespace = ""
	}
	there, err := cluster.List[v1alpha1.ElasticService](ctx, c, cluster.Services, namespace)
	if err != nil {
		return err
	}
	taken := owners(there)
	found, err := takeover.Scalers(ctx, c, namespace)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAMESPACE", "KIND", "NAME", "TARGET", "RESULT"}}
	failed := 0
	for _, x := range found {
		adopted, err := takeover.Read(ctx, c, x.Kind, x.Name, a.options())
		target, result := cell.None, ""
		if err == nil {
			s := adopted.Service
			target = s.Spec.TargetRef.Kind + "/" + s.Spec.TargetRef.Name
			if owner := taken.name(s); owner != nil {
				err = fmt.Errorf("its target has ElasticService %s already", owner.Name)
			} else {
				taken.take(s)
			}
		}
		switch {
		case err != nil:
			result = "skipped: " + err.Error()
		case o.DryRun == cluster.DryRunClient:
			result = "would be adopted"
		default:
			if err := createService(o, silent(cmd), c, adopted.Service); err != nil {
				result, failed = "failed: "+err.Error(), failed+1
			} else if o.DryRun == cluster.DryRunServer {
				result = "would be adopted: the API server accepts it"
			} else {
				result = "adopted in mode Observe"
			}
		}
		if err == nil {
			if s := adopted.Service; s.Name != s.Spec.TargetRef.Name {
				result += " as " + s.Name
			}
			result = strings.Join(append([]string{result}, remarks(adopted)...), "; ")
		}
		rows = append(rows, []string{x.Name.Namespace, x.Kind, x.Name.Name, target, result})
	}
	if len(found) == 0 {
		return cluster.Say(cmd.OutOrStdout(), o, "no autoscaler is there: nothing to adopt")
	}
	if err := (&screen.Table{Out: cmd.OutOrStdout()}).Print(rows); err != nil {
		return err
	}
	if failed > 0 {
		return usage.Found("%s could not be adopted", cell.Count(failed, "autoscaler"))
	}
	return nil
}

// silent is a command whose output goes nowhere, for a step of a larger one.
func silent(cmd *cobra.Command) *cobra.Command {
	quiet := &cobra.Command{}
	quiet.SetOut(io.Discard)
	quiet.SetErr(io.Discard)
	quiet.SetContext(cmd.Context())
	return quiet
}

func createService(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, s *v1alpha1.ElasticService) error {
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return fmt.Errorf("render ElasticService %s: %w", s.Name, err)
	}
	delete(value, "status")
	if o.DryRun == cluster.DryRunClient {
		return screen.Encode(cmd.OutOrStdout(), "yaml", value)
	}
	_, err = c.Resource(cluster.Services, s.Namespace).Create(cmd.Context(), &unstructured.Unstructured{Object: value},
		metav1.CreateOptions{FieldManager: "springtide-cli", DryRun: o.ServerDryRun()})
	if err != nil {
		return fmt.Errorf("create ElasticService %s/%s: %w", s.Namespace, s.Name, err)
	}
	return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("ElasticService %s/%s created in mode %s; see springtide explain service %s/%s",
		s.Namespace, s.Name, s.Spec.Mode, s.Namespace, s.Name))
}

// adoptedBefore says what to do where the target of an adoption has a service.
func adoptedBefore(was, s *v1alpha1.ElasticService) error {
	name := fleet.Name{Namespace: was.Namespace, Name: was.Name}
	by := cmp.Or(was.Spec.Actuation, string(fleet.ByScale))
	if by == s.Spec.Actuation {
		return fmt.Errorf("ElasticService %s is there already and acts by %s: nothing is left to adopt; springtide explain service %s says how it stands", name, by, name)
	}
	return fmt.Errorf("ElasticService %s is there already and acts by %s: set its spec.actuation to %s", name, by, s.Spec.Actuation)
}

// takeOver pauses a ScaledObject and lets the service of its target act. The service is written first where there is none: between the two
// writes KEDA goes on, so there is no gap. A dry run shows the service as it would be at the end.
func takeOver(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name, s, owner *v1alpha1.ElasticService) error {
	ctx := cmd.Context()
	switch {
	case owner == nil:
		if o.DryRun != cluster.DryRunNone {
			s.Spec.Mode = string(fleet.Auto)
		}
		if err := createService(o, cmd, c, s); err != nil {
			return err
		}
	case owner.Spec.Actuation == string(fleet.ByHPAFloor):
		return adoptedBefore(owner, s)
	default:
		s = owner
	}
	service := fleet.Name{Namespace: s.Namespace, Name: s.Name}
	if o.DryRun != cluster.DryRunClient {
		r := c.Dyn.Resource(takeover.Resources[takeover.ScaledObject]).Namespace(name.Namespace)
		before, err := r.Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read ScaledObject %s: %w", name, err)
		}
		mark := cmp.Or(before.GetAnnotations()[v1alpha1.AnnotationTakenOver], "true")
		if notes := before.GetAnnotations(); notes[v1alpha1.AnnotationKEDAPaused] == "true" && notes[v1alpha1.AnnotationTakenOver] == "" {
			mark = takeover.StaysPaused
		}
		pause, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationKEDAPaused: "true", v1alpha1.AnnotationTakenOver: mark}}})
		if err != nil {
			return err
		}
		if _, err := r.Patch(ctx, name.Name, types.MergePatchType, pause, o.Patch()); err != nil {
			return fmt.Errorf("pause ScaledObject %s: %w", name, err)
		}
		// In a dry run a service that is new is not there to be changed: it was judged in mode Auto.
		if o.DryRun == cluster.DryRunNone || owner != nil {
			if err := takeover.SetMode(ctx, o, c, service, fleet.Auto); err != nil {
				return err
			}
		}
	}
	return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("ScaledObject %s is paused, and ElasticService %s is in mode Auto; springtide release %s gives it back", name, service, service))
}
