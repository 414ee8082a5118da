package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate"
)

func newAdoptCommand(o *cliOptions) *cobra.Command {
	var utilisation int32
	cmd := &cobra.Command{
		Use:   "adopt HPA",
		Short: "Put an existing HorizontalPodAutoscaler under a forecast, without a gap",
		Long: "Write an ElasticService for the target of a HorizontalPodAutoscaler that is there: its bounds, its CPU target as the SLO, actuation\n" +
			"HPAFloor and mode Observe. The HPA stays in charge; in mode Auto Springtide raises its minReplicas before the flood and lowers it\n" +
			"again. Look at the forecast first (springtide services, springtide explain service), then set mode Auto. springtide release gives\n" +
			"the HPA back.",
		Example: "  springtide adopt shop/cart --dry-run=client",
		Args:    exactly("HPA"),
		RunE: o.about(func(cmd *cobra.Command, c *clients, name fleet.Name) error {
			hpa, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(name.Namespace).Get(cmd.Context(), name.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("read HorizontalPodAutoscaler %s: %w", name, err)
			}
			s, err := serviceFor(hpa, utilisation)
			if err != nil {
				return err
			}
			return o.createService(cmd, c, s)
		}),
	}
	cmd.Flags().Int32Var(&utilisation, "utilisation", 0, "CPU utilisation in percent of the requests that the SLO allows; the HPA's CPU target when 0")
	o.changing(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions // it is an HPA that is named
	return cmd
}

// serviceFor is the ElasticService that does what the HPA does, and no more until its mode is changed.
func serviceFor(hpa *autoscalingv2.HorizontalPodAutoscaler, utilisation int32) (*v1alpha1.ElasticService, error) {
	for _, owner := range hpa.OwnerReferences {
		if owner.Kind == "ScaledObject" {
			return nil, usageError{fmt.Errorf("HorizontalPodAutoscaler %s belongs to ScaledObject %s, which would undo every change: take its triggers "+
				"over as metrics and delete the ScaledObject first", hpa.Name, owner.Name)}
		}
	}
	if utilisation == 0 {
		utilisation = cpuTarget(hpa)
	}
	if utilisation < 1 || utilisation > 100 {
		return nil, usageError{fmt.Errorf("HorizontalPodAutoscaler %s has no CPU target between 1 and 100 %%: give --utilisation", hpa.Name)}
	}
	ref := hpa.Spec.ScaleTargetRef
	s := &v1alpha1.ElasticService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ElasticService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hpa.Namespace, Name: ref.Name},
		Spec: v1alpha1.ElasticServiceSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name},
			Mode:      string(fleet.Observe),
			Actuation: string(fleet.ByHPAFloor),
			SLO:       v1alpha1.SLO{Utilisation: &v1alpha1.UtilisationSLO{Percent: utilisation}},
			Replicas:  v1alpha1.ReplicaBounds{Min: 1, Max: hpa.Spec.MaxReplicas},
		},
	}
	if hpa.Spec.MinReplicas != nil {
		s.Spec.Replicas.Min = max(*hpa.Spec.MinReplicas, 1)
	}
	if found := validate.ElasticService(s, validate.DefaultNamespaceLabel); len(found) > 0 {
		return nil, usageError{fmt.Errorf("HorizontalPodAutoscaler %s scales what Springtide cannot: %s", hpa.Name, found[0].Message)}
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
		return fmt.Errorf("ElasticService %s/%s is there already: change its actuation to HPAFloor instead", s.Namespace, s.Name)
	}
	if err != nil {
		return fmt.Errorf("create ElasticService %s/%s: %w", s.Namespace, s.Name, err)
	}
	return say(cmd.OutOrStdout(), o, fmt.Sprintf("ElasticService %s/%s created in mode Observe; see springtide explain service %s/%s",
		s.Namespace, s.Name, s.Namespace, s.Name))
}

// hpasOf lists the HPAs that scale a target.
func hpasOf(ctx context.Context, c *clients, namespace string, ref v1alpha1.TargetRef) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	found, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the HorizontalPodAutoscalers of %s: %w", namespace, err)
	}
	var out []autoscalingv2.HorizontalPodAutoscaler
	for _, h := range found.Items {
		if r := h.Spec.ScaleTargetRef; r.Kind == ref.Kind && r.Name == ref.Name {
			out = append(out, h)
		}
	}
	return out, nil
}
