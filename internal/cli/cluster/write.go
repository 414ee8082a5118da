package cluster

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Say prints what was done, or what would have been.
func Say(out io.Writer, o *Options, what string) error {
	if o.DryRun != DryRunNone {
		what += " (dry run)"
	}
	_, err := fmt.Fprintln(out, what)
	return err
}

// MergePatch renders a JSON merge patch.
func MergePatch(v map[string]any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("render the patch: %w", err)
	}
	return body, nil
}

// Patch are the options of each patch that the command line sends.
func (o *Options) Patch() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: "springtide-cli", DryRun: o.ServerDryRun()}
}

// Changing adds the flags of a verb that changes a namespaced object.
func (o *Options) Changing(cmd *cobra.Command) *cobra.Command {
	o.Cluster(cmd)
	o.Namespaced(cmd, "namespace of a name that is given without one")
	o.Dry(cmd)
	o.Completes(cmd, Services)
	return cmd
}

// Controller adds -n for the controller's namespace.
func (o *Options) Controller(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", ControllerNamespace, "namespace of the controller")
	o.completesNamespaces(cmd)
}
