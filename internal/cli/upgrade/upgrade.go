// Package upgrade says whether a cluster is ready for another version of Springtide or of Kubernetes.
package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/build"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewCommand groups the verbs about a change of version.
func NewCommand(o *cluster.Options) *cobra.Command {
	return usage.Group(&cobra.Command{
		Use:     "upgrade",
		Short:   "Prepare a change of version",
		Example: "  springtide upgrade check\n  springtide upgrade check --to 1.37",
	}, newUpgradeCheckCommand(o))
}

func newUpgradeCheckCommand(o *cluster.Options) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the cluster is ready for the version of this binary, or for a release of Kubernetes",
		Long: "Compare the version of this binary with the cluster: Kubernetes, the definitions and the versions that they store, the running controller,\n" +
			"loans that do not come home, objects that are refused, and the store (with --store). With --to it looks at an upgrade of Kubernetes instead:\n" +
			"objects of versions that are dropped and who owns them, gates that the release does not know, and versions of kubelets. Nothing is changed.\n" +
			"Exit code 1 when there is a problem. docs/upgrade.md has the steps and the way back.",
		Example: "  springtide upgrade check\n  springtide upgrade check --to 1.37",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := []examine.Check{
				{Name: "API server", Run: examine.CheckServer}, {Name: "definitions", Run: checkStored}, {Name: "controller", Run: checkRunning}, {Name: "loans", Run: checkMoves}, {Name: "objects", Run: examine.CheckObjects}, {Name: "store", Run: examine.CheckStore},
			}
			if cmd.Flags().Changed("to") {
				var err error
				if checks, err = kubernetesChecks(to); err != nil {
					return err
				}
			}
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			d := &examine.Examination{Clients: c, Namespace: o.Namespace, Store: cmp.Or(o.Store, c.Store)}
			d.Examine(cmd.Context(), checks)
			return d.Print(cmd.OutOrStdout(), o.Output)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "release of Kubernetes that the cluster is to be upgraded to, as 1.37")
	o.Cluster(cmd)
	o.Controller(cmd)
	o.History(cmd)
	o.Formats(cmd, "table", "json", "yaml")
	return cmd
}

// checkStored makes sure that this version serves every version that objects are stored in, and says which definitions change.
func checkStored(ctx context.Context, d *examine.Examination) error {
	var changed []string
	err := d.EachDefinition(ctx, func(want, have *apiextensionsv1.CustomResourceDefinition, err error) error {
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		for _, v := range have.Status.StoredVersions {
			if !slices.ContainsFunc(want.Spec.Versions, func(w apiextensionsv1.CustomResourceDefinitionVersion) bool { return w.Name == v }) {
				d.Report("migrate the stored objects with the release that is running, as its notes say, and then go on",
					"objects of %s are stored as %s, which this version does not know", want.Name, v)
			}
		}
		if err != nil || !examine.SameDefinition(want, have) {
			changed = append(changed, want.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		d.Advise("helm upgrade springtide-crds, or kubectl apply --server-side -f deploy/crd of this release, before the controller",
			"%s change: %s", cell.Count(len(changed), "definition"), strings.Join(changed, ", "))
		return nil
	}
	d.OK("no definition changes")
	return nil
}

// checkRunning compares the version of the running controller with this one.
func checkRunning(ctx context.Context, d *examine.Examination) error {
	deployment, err := d.Clients.Core.AppsV1().Deployments(d.Namespace).Get(ctx, cluster.ControllerDeployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		d.Advise("compare the versions yourself", "no Deployment %s in namespace %s: the controller runs in another way", cluster.ControllerDeployment, d.Namespace)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the controller's Deployment: %w", err)
	}
	image := deployment.Spec.Template.Spec.Containers[0].Image
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	runs, err := utilversion.ParseGeneric(tag)
	own, ownErr := utilversion.ParseGeneric(build.This().Version)
	switch {
	case err != nil || ownErr != nil:
		d.Advise("compare the versions yourself", "the controller runs image %s, this is version %s", image, build.This().Version)
	case own.LessThan(runs):
		d.Advise("docs/upgrade.md, Roll back: leave the definitions of the newer release, and give this version another store", "the controller runs %s, which is newer than this version %s", tag, build.This().Version)
	case own.Major() != runs.Major() || own.Minor() > runs.Minor()+1:
		d.Report("upgrade one minor release after the other", "the controller runs %s: %s is more than one release ahead", tag, build.This().Version)
	default:
		d.OK("%s -> %s", tag, build.This().Version)
	}
	return nil
}

// checkMoves names loans that a change of leader would delay further.
func checkMoves(ctx context.Context, d *examine.Examination) error {
	all, err := cluster.List[v1alpha1.Loan](ctx, d.Clients, cluster.Loans, "")
	if err != nil {
		return err
	}
	var stuck []string
	for i := range all {
		if fleet.Phase(all[i].Status.Phase).Lost() {
			stuck = append(stuck, all[i].Name)
		}
	}
	if len(stuck) > 0 {
		d.Advise("springtide explain node says what they wait for; an upgrade neither helps nor harms them", "%s did not come home: %s", cell.Count(len(stuck), "loan"), strings.Join(stuck, ", "))
		return nil
	}
	d.OK("%s, which an upgrade leaves as they are", cell.Count(len(all), "loan"))
	return nil
}
