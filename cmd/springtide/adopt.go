package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate"
)

// The scalers that adopt and release know.
const (
	scalerHPA          = "hpa"
	scalerScaledObject = "scaledobject"
	scalerCronHPA      = "cronhpa"
)

// adoption is how adopt was called.
type adoption struct {
	kind        string
	utilisation int32
	zone        string
	all         bool
	takeOver    bool
}

func newAdoptCommand(o *cliOptions) *cobra.Command {
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
			"--all adopts every autoscaler of the namespace (-A: of all) whose target has no ElasticService yet; with --dry-run it lists what would be\n" +
			"done, and why some cannot be. springtide release gives all of them back.",
		Example: "  springtide adopt shop/cart --dry-run=client\n  springtide adopt --all -A --dry-run\n  springtide adopt --kind scaledobject shop/mail --take-over",
		Args: func(cmd *cobra.Command, args []string) error {
			if a.all {
				return exactly()(cmd, args)
			}
			return exactly("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.connect(o)
			if err != nil {
				return err
			}
			if a.all {
				return o.adoptAll(cmd, c, &a)
			}
			name, err := o.nameOf(c, args[0])
			if err != nil {
				return err
			}
			return o.adoptOne(cmd, c, &a, name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.kind, "kind", scalerHPA, "what NAME is: hpa, scaledobject or cronhpa")
	f.Int32Var(&a.utilisation, "utilisation", 0, "CPU utilisation in percent of the requests that the SLO allows; the autoscaler's CPU target when 0")
	f.StringVar(&a.zone, "time-zone", "UTC", "IANA zone by which a cronhpa's jobs run: that of its controller")
	f.BoolVar(&a.all, "all", false, "adopt every autoscaler of the namespace whose target has no ElasticService yet")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "with --all: in all namespaces")
	f.BoolVar(&a.takeOver, "take-over", false, "of a scaledobject: pause it, and set mode Auto")
	o.changing(cmd)
	o.completes(cmd, hpas)
	kinds := []string{scalerHPA, scalerScaledObject, scalerCronHPA}
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	before(cmd, func(*cobra.Command, []string) error {
		switch {
		case !slices.Contains(kinds, a.kind):
			return usageError{fmt.Errorf("--kind %s: want %s%s", a.kind, strings.Join(kinds, ", "), didYouMean(a.kind, kinds))}
		case a.takeOver && a.kind != scalerScaledObject:
			return usageError{fmt.Errorf("--take-over is for --kind scaledobject: an HPA is kept, and a CronHorizontalPodAutoscaler cannot be paused")}
		}
		return nil
	})
	return cmd
}

func (o *cliOptions) adoptOne(cmd *cobra.Command, c *clients, a *adoption, name fleet.Name) error {
	s, notes, err := a.serviceOf(cmd.Context(), c, a.kind, name)
	if err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	if a.takeOver {
		return o.takeOver(cmd, c, name, s)
	}
	return o.createService(cmd, c, s)
}

// serviceOf is the ElasticService that does what a scaler does, and no more until its mode is changed.
func (a *adoption) serviceOf(ctx context.Context, c *clients, kind string, name fleet.Name) (*v1alpha1.ElasticService, []string, error) {
	switch kind {
	case scalerScaledObject:
		u, err := c.scaler(ctx, kind, name)
		if err != nil {
			return nil, nil, err
		}
		return serviceOfScaledObject(u, a.utilisation)
	case scalerCronHPA:
		u, err := c.scaler(ctx, kind, name)
		if err != nil {
			return nil, nil, err
		}
		return serviceOfCronHPA(u, a.utilisation, a.zone)
	}
	hpa, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, readingOne("HorizontalPodAutoscaler", name, err)
	}
	s, err := serviceFor(hpa, a.utilisation)
	return s, nil, err
}

// adoptAll adopts what can be, or says what would be adopted.
func (o *cliOptions) adoptAll(cmd *cobra.Command, c *clients, a *adoption) error {
	ctx, namespace := cmd.Context(), o.namespace
	if namespace == "" && !o.allNamespaces {
		namespace = c.namespace
	}
	if o.allNamespaces {
		namespace = ""
	}
	there, err := list[v1alpha1.ElasticService](ctx, c, services, namespace)
	if err != nil {
		return err
	}
	taken := map[string]string{}
	for i := range there {
		s := &there[i]
		taken[s.Namespace+"/"+s.Spec.TargetRef.Kind+"/"+s.Spec.TargetRef.Name] = s.Name
	}
	found, err := c.scalers(ctx, namespace)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAMESPACE", "KIND", "NAME", "TARGET", "RESULT"}}
	failed := 0
	for _, x := range found {
		s, notes, err := a.serviceOf(ctx, c, x.kind, x.name)
		target, result := none, ""
		if err == nil {
			target = s.Spec.TargetRef.Kind + "/" + s.Spec.TargetRef.Name
			key := s.Namespace + "/" + target
			if owner := taken[key]; owner != "" {
				err = fmt.Errorf("its target has ElasticService %s already", owner)
			} else {
				taken[key] = s.Name
			}
		}
		switch {
		case err != nil:
			result = "skipped: " + err.Error()
		case o.dryRun == dryRunClient:
			result = "would be adopted"
		default:
			if err := o.createService(silent(cmd), c, s); err != nil {
				result, failed = "failed: "+err.Error(), failed+1
			} else {
				result = "adopted in mode Observe"
			}
		}
		if len(notes) > 0 && err == nil {
			result += "; " + strings.Join(notes, "; ")
		}
		rows = append(rows, []string{x.name.Namespace, x.kind, x.name.Name, target, result})
	}
	if len(found) == 0 {
		return say(cmd.OutOrStdout(), o, "no autoscaler is there: nothing to adopt")
	}
	if err := (&table{out: cmd.OutOrStdout()}).print(rows); err != nil {
		return err
	}
	if failed > 0 {
		return errFound("%s could not be adopted", count(failed, "autoscaler"))
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

// found is one scaler of a cluster.
type foundScaler struct {
	kind string
	name fleet.Name
}

// scalers lists all scalers that can be adopted by themselves: an HPA of a ScaledObject goes with that.
func (c *clients) scalers(ctx context.Context, namespace string) ([]foundScaler, error) {
	var out []foundScaler
	all, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the HorizontalPodAutoscalers: %w", err)
	}
	for i := range all.Items {
		h := &all.Items[i]
		if owner := metav1.GetControllerOf(h); owner == nil || owner.Kind != "ScaledObject" {
			out = append(out, foundScaler{scalerHPA, fleet.Name{Namespace: h.Namespace, Name: h.Name}})
		}
	}
	for _, kind := range []string{scalerScaledObject, scalerCronHPA} {
		raw, err := c.dyn.Resource(scalerResources[kind]).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue // its operator is not installed
		}
		if err != nil {
			return nil, fmt.Errorf("read the %ss: %w", kind, err)
		}
		for i := range raw.Items {
			out = append(out, foundScaler{kind, fleet.Name{Namespace: raw.Items[i].GetNamespace(), Name: raw.Items[i].GetName()}})
		}
	}
	slices.SortFunc(out, func(a, b foundScaler) int {
		return strings.Compare(a.name.String()+a.kind, b.name.String()+b.kind)
	})
	return out, nil
}

// serviceFor is the ElasticService that does what the HPA does, and no more until its mode is changed.
func serviceFor(hpa *autoscalingv2.HorizontalPodAutoscaler, utilisation int32) (*v1alpha1.ElasticService, error) {
	for _, owner := range hpa.OwnerReferences {
		if owner.Kind == "ScaledObject" {
			return nil, usageError{fmt.Errorf("HorizontalPodAutoscaler %s belongs to ScaledObject %s, which would undo every change: adopt that "+
				"(springtide adopt --kind scaledobject %s/%s)", hpa.Name, owner.Name, hpa.Namespace, owner.Name)}
		}
	}
	if utilisation == 0 {
		utilisation = cpuTarget(hpa)
	}
	ref := hpa.Spec.ScaleTargetRef
	s := newService(hpa.Namespace, v1alpha1.TargetRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
	s.Spec.Actuation = string(fleet.ByHPAFloor)
	s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 1, Max: hpa.Spec.MaxReplicas}
	if hpa.Spec.MinReplicas != nil {
		s.Spec.Replicas.Min = max(*hpa.Spec.MinReplicas, 1)
	}
	return finish(s, "HorizontalPodAutoscaler "+hpa.Name, utilisation)
}

func newService(namespace string, target v1alpha1.TargetRef) *v1alpha1.ElasticService {
	return &v1alpha1.ElasticService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ElasticService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: target.Name},
		Spec:       v1alpha1.ElasticServiceSpec{TargetRef: target, Mode: string(fleet.Observe)},
	}
}

// finish sets the service level and judges the result.
func finish(s *v1alpha1.ElasticService, of string, utilisation int32) (*v1alpha1.ElasticService, error) {
	if utilisation < 1 || utilisation > 100 {
		return nil, usageError{fmt.Errorf("%s has no CPU target between 1 and 100 %%: give --utilisation", of)}
	}
	s.Spec.SLO = v1alpha1.SLO{Utilisation: &v1alpha1.UtilisationSLO{Percent: utilisation}}
	if found := validate.ElasticService(s, validate.DefaultNamespaceLabel); len(found) > 0 {
		return nil, usageError{fmt.Errorf("%s scales what Springtide cannot: %s", of, found[0])}
	}
	return s, nil
}

func cpuTarget(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 {
	for _, m := range hpa.Spec.Metrics {
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			return *m.Resource.Target.AverageUtilization
		}
		if m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceCPU && m.ContainerResource.Target.AverageUtilization != nil {
			return *m.ContainerResource.Target.AverageUtilization
		}
	}
	return 0
}

func (o *cliOptions) createService(cmd *cobra.Command, c *clients, s *v1alpha1.ElasticService) error {
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return fmt.Errorf("render ElasticService %s: %w", s.Name, err)
	}
	delete(value, "status")
	if o.dryRun == dryRunClient {
		return encode(cmd.OutOrStdout(), "yaml", value)
	}
	_, err = c.resource(services, s.Namespace).Create(cmd.Context(), &unstructured.Unstructured{Object: value},
		metav1.CreateOptions{FieldManager: "springtide-cli", DryRun: o.serverDryRun()})
	if apierrors.IsAlreadyExists(err) {
		return o.adoptedBefore(cmd.Context(), c, s)
	}
	if err != nil {
		return fmt.Errorf("create ElasticService %s/%s: %w", s.Namespace, s.Name, err)
	}
	return say(cmd.OutOrStdout(), o, fmt.Sprintf("ElasticService %s/%s created in mode Observe; see springtide explain service %s/%s",
		s.Namespace, s.Name, s.Namespace, s.Name))
}

// adoptedBefore says what to do where the service of an adoption is there already.
func (o *cliOptions) adoptedBefore(ctx context.Context, c *clients, s *v1alpha1.ElasticService) error {
	name := fleet.Name{Namespace: s.Namespace, Name: s.Name}
	was, err := get[v1alpha1.ElasticService](ctx, c, services, name)
	switch {
	case err != nil:
		return err
	case was.Spec.TargetRef != s.Spec.TargetRef:
		return fmt.Errorf("ElasticService %s is there already, for %s %s: give one of them another name", name, was.Spec.TargetRef.Kind, was.Spec.TargetRef.Name)
	case was.Spec.Actuation == s.Spec.Actuation:
		return fmt.Errorf("ElasticService %s is there already and acts by %s: nothing is left to adopt; springtide explain service %s says how it stands", name, orNone(was.Spec.Actuation), name)
	}
	return fmt.Errorf("ElasticService %s is there already and acts by %s: set its spec.actuation to %s", name, orNone(was.Spec.Actuation), s.Spec.Actuation)
}

// takeOver pauses a ScaledObject and lets the service of its target act. The service is written first where there is none: between the two
// writes KEDA goes on, so there is no gap.
func (o *cliOptions) takeOver(cmd *cobra.Command, c *clients, name fleet.Name, s *v1alpha1.ElasticService) error {
	ctx, service := cmd.Context(), fleet.Name{Namespace: s.Namespace, Name: s.Name}
	_, err := get[v1alpha1.ElasticService](ctx, c, services, service)
	if apierrors.IsNotFound(err) {
		if err := o.createService(cmd, c, s); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if o.dryRun != dryRunClient {
		r := c.dyn.Resource(scalerResources[scalerScaledObject]).Namespace(name.Namespace)
		before, err := r.Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read ScaledObject %s: %w", name, err)
		}
		mark := cmp.Or(before.GetAnnotations()[v1alpha1.AnnotationTakenOver], "true")
		if notes := before.GetAnnotations(); notes[v1alpha1.AnnotationKEDAPaused] == "true" && notes[v1alpha1.AnnotationTakenOver] == "" {
			mark = takenPaused
		}
		pause, err := mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationKEDAPaused: "true", v1alpha1.AnnotationTakenOver: mark}}})
		if err != nil {
			return err
		}
		if _, err := r.Patch(ctx, name.Name, types.MergePatchType, pause, o.patch()); err != nil {
			return fmt.Errorf("pause ScaledObject %s: %w", name, err)
		}
		if err := o.setMode(ctx, c, service, fleet.Auto); err != nil {
			return err
		}
	}
	return say(cmd.OutOrStdout(), o, fmt.Sprintf("ScaledObject %s is paused, and ElasticService %s is in mode Auto; springtide release %s gives it back", name, service, service))
}

func (o *cliOptions) setMode(ctx context.Context, c *clients, service fleet.Name, mode fleet.Mode) error {
	body, err := mergePatch(map[string]any{"spec": map[string]any{"mode": string(mode)}})
	if err != nil {
		return err
	}
	if _, err := c.resource(services, service.Namespace).Patch(ctx, service.Name, types.MergePatchType, body, o.patch()); err != nil {
		return fmt.Errorf("set the mode of %s: %w", service, err)
	}
	return nil
}
