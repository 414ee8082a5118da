// Package act holds the verbs that hold or change what the controller does: pause and resume, freeze and thaw, recall, node forget-agent.
package act

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate"
)

// pausable is one kind of object that can be paused.
type pausable struct {
	on         validate.PausedKind
	kind       string // as it is shown
	plural     string // of our kinds
	namespaced bool
	// what says what a pause holds of it.
	what string
}

var (
	pausableService = pausable{validate.PausedService, "ElasticService", cluster.Services, true,
		"Its replicas and requests stay as they are, or at the number of --at; --in and --out hold one direction alone."}
	pausableJob = pausable{validate.PausedJob, "ElasticJob", cluster.Jobs, true,
		"The job keeps what it has and gets nothing more. Recalls and deadlines of quotas still take."}
	pausablePool = pausable{validate.PausedPool, "CapacityPool", cluster.Pools, false,
		"Nothing of the pool is lent, and it borrows for pods that wait alone. Recalls go on."}
	pausableNamespace = pausable{validate.PausedNamespace, "Namespace", "", false,
		"All services and jobs of the namespace are paused."}
)

var pausables = []*pausable{&pausableService, &pausableJob, &pausablePool, &pausableNamespace}

func (p *pausable) example() string {
	if p.namespaced {
		return fmt.Sprintf("%s cart -n shop", p.on)
	}
	return fmt.Sprintf("%s shop", p.on)
}

// NewPauseCommand makes `springtide pause`.
func NewPauseCommand(o *cluster.Options) *cobra.Command {
	verbs := make([]*cobra.Command, len(pausables))
	for i, p := range pausables {
		verbs[i] = newPause(o, p)
	}
	return usage.Group(&cobra.Command{
		Use:   "pause",
		Short: "Pause a service, a job, a pool or a namespace, until it is resumed or its time is over",
		Long: "Pause a service, a job, a pool or a namespace. The pause is an annotation with the reason, the user and\n" +
			"the end. A GitOps controller leaves it alone, since it does not stand in Git. The pause ends by itself at " +
			"its end.\n" +
			"The object goes on being observed, so that springtide explain shows what would be done. springtide resume\n" +
			"ends the pause.",
		Example: `  springtide pause service cart -n shop --reason "INC-1234" --for 2h`,
	}, verbs...)
}

// pauseFlags are what a pause is to be.
type pauseFlags struct {
	reason, until string
	lasts         time.Duration
	at            int32
	in, out       bool
}

func newPause(o *cluster.Options, p *pausable) *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:     string(p.on) + " NAME",
		Short:   "Pause a " + string(p.on),
		Long:    p.what + "\n" + "Without --for or --until, the pause lasts until springtide resume removes it.",
		Example: fmt.Sprintf("  springtide pause %s --reason \"INC-1234\" --for 2h", p.example()),
		Args:    usage.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, name, err := p.named(o, args[0])
			if err != nil {
				return err
			}
			return p.pause(o, cmd, c, name, &f)
		},
	}
	p.flags(o, cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; shown wherever an action is held")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "how long it lasts, as in 2h")
	cmd.Flags().StringVar(&f.until, "until", "", "when it ends, as in 2026-08-08T06:00:00Z")
	if p.on == validate.PausedService {
		cmd.Flags().Int32Var(&f.at, "at", 0,
			"number of replicas while it lasts, within the service's bounds; as they are when it is not given")
		cmd.Flags().BoolVar(&f.in, "in", false, "hold scale-in alone")
		cmd.Flags().BoolVar(&f.out, "out", false, "hold scale-out alone")
	}
	usage.Require(cmd, "reason")
	return cmd
}

// NewResumeCommand makes `springtide resume`.
func NewResumeCommand(o *cluster.Options) *cobra.Command {
	verbs := make([]*cobra.Command, len(pausables))
	for i, p := range pausables {
		verbs[i] = newResume(o, p)
	}
	return usage.Group(&cobra.Command{
		Use:     "resume",
		Short:   "End the pause of a service, a job, a pool or a namespace",
		Example: "  springtide resume service cart -n shop",
	}, verbs...)
}

func newResume(o *cluster.Options, p *pausable) *cobra.Command {
	cmd := &cobra.Command{
		Use:   string(p.on) + " NAME",
		Short: "End the pause of a " + string(p.on),
		Long: "Remove the annotation of the pause. A pause that stands in the spec, or on the namespace, is named and\n" +
			"stays.",
		Example: "  springtide resume " + p.example(),
		Args:    usage.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, name, err := p.named(o, args[0])
			if err != nil {
				return err
			}
			return p.resume(o, cmd, c, name)
		},
	}
	p.flags(o, cmd)
	return cmd
}

func (p *pausable) flags(o *cluster.Options, cmd *cobra.Command) {
	o.Cluster(cmd)
	o.Dry(cmd)
	if p.namespaced {
		o.Namespaced(cmd, "namespace of a name that is given without one")
	}
	if p.plural != "" {
		o.Completes(cmd, p.plural)
	}
}

func (p *pausable) named(o *cluster.Options, arg string) (*cluster.Clients, fleet.Name, error) {
	c, err := o.Connect(o)
	if err != nil || !p.namespaced {
		return c, fleet.Name{Name: arg}, err
	}
	name, err := o.NameOf(c, arg)
	return c, name, err
}

// standing is what of an object a pause depends on.
type standing struct {
	Metadata metav1.ObjectMeta           `json:"metadata"`
	Spec     v1alpha1.ElasticServiceSpec `json:"spec"`
	Status   struct {
		Pause *v1alpha1.PauseStatus `json:"pause"`
	} `json:"status"`
}

func (p *pausable) read(ctx context.Context, c *cluster.Clients, name fleet.Name) (*standing, error) {
	if p.plural != "" {
		return cluster.Get[standing](ctx, c, p.plural, name)
	}
	ns, err := c.Core.CoreV1().Namespaces().Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, usage.Found("there is no namespace %s", name.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name.Name, err)
	}
	return &standing{Metadata: ns.ObjectMeta}, nil
}

func (p *pausable) pause(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name,
	f *pauseFlags) error {
	now := c.Now()
	h, err := f.hold(cmd, now)
	if err != nil {
		return usage.Error{Err: err}
	}
	s, err := p.read(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	if least, most := s.Spec.Replicas.Min, s.Spec.Replicas.Max; h.Replicas.OK && (f.at < least || f.at > most) {
		return usage.Error{Err: fmt.Errorf("--at %d is not within the service's bounds: give %d to %d", f.at, least, most)}
	}
	h.By = who(cmd.Context(), c)
	what := fmt.Sprintf("%s %s is paused: %s", p.kind, name, pauseText(&h))
	if text, ok := s.Metadata.Annotations[v1alpha1.AnnotationPause]; ok {
		was := validate.Pause(text, p.on)
		what += "; before: " + pauseText(&was)
	}
	if err := p.write(o, cmd, c, name, validate.PauseText(&h)); err != nil {
		return err
	}
	return cluster.Say(cmd.OutOrStdout(), o, what)
}

// hold is the pause that the flags ask for.
func (f *pauseFlags) hold(cmd *cobra.Command, now time.Time) (fleet.Hold, error) {
	h := fleet.Hold{Pause: fleet.PauseAll, Reason: f.reason, Since: now.UTC().Truncate(time.Second)}
	switch {
	case f.reason == "":
		return h, fmt.Errorf("--reason is empty: say why, it is shown wherever an action is held")
	case f.in && !f.out:
		h.Pause = fleet.PauseIn
	case f.out && !f.in:
		h.Pause = fleet.PauseOut
	}
	if cmd.Flags().Changed("at") {
		if h.Pause != fleet.PauseAll {
			return h, fmt.Errorf("--at holds both directions: leave --in and --out out")
		}
		h.Replicas = fleet.Known[int32]{Value: f.at, OK: true}
	}
	switch {
	case cmd.Flags().Changed("for") && f.until != "":
		return h, fmt.Errorf("--for and --until both say when it ends: give one of them")
	case cmd.Flags().Changed("for"):
		h.Until = h.Since.Add(f.lasts)
	case f.until != "":
		t, err := time.Parse(time.RFC3339, f.until)
		if err != nil {
			return h, fmt.Errorf("--until %q is no time: write one such as 2026-08-08T06:00:00Z", f.until)
		}
		h.Until = t.UTC()
	default:
		return h, nil
	}
	if !h.Until.After(now) {
		return h, fmt.Errorf("the pause would be over at %s: give an end that is still to come", h.Until.Format(time.RFC3339))
	}
	return h, nil
}

func pauseText(h *fleet.Hold) string {
	text := string(h.Pause)
	if h.Replicas.OK {
		text += fmt.Sprintf(" at %d", h.Replicas.Value)
	}
	if h.Unreadable != "" {
		return text + ", unreadable: " + h.Unreadable
	}
	text += ", " + h.Reason
	if h.Until.IsZero() {
		return text + ", until springtide resume"
	}
	return text + ", until " + cell.Stamp(&metav1.Time{Time: h.Until})
}

// who is the user as the API server knows it; empty where it does not say.
func who(ctx context.Context, c *cluster.Clients) string {
	me, err := c.Core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return v1alpha1.Clip(me.Status.UserInfo.Username, v1alpha1.MaxPauseBy)
}

func (p *pausable) resume(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
	s, err := p.read(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	text, ok := s.Metadata.Annotations[v1alpha1.AnnotationPause]
	what := fmt.Sprintf("%s %s has no annotation of a pause", p.kind, name)
	if ok {
		was := validate.Pause(text, p.on)
		what = fmt.Sprintf("%s %s is resumed; it was paused: %s", p.kind, name, pauseText(&was))
		if err := p.write(o, cmd, c, name, nil); err != nil {
			return err
		}
	}
	if by := p.othersHold(s); by != "" {
		what += "; it stays paused: " + by
	}
	return cluster.Say(cmd.OutOrStdout(), o, what)
}

// othersHold names a pause that no annotation of the object holds; empty where there is none.
func (p *pausable) othersHold(s *standing) string {
	if by := s.Spec.Pause; p.on == validate.PausedService && by != nil {
		return fmt.Sprintf("spec.pause has scope %s, to end it remove it from the manifest",
			cmp.Or(by.Scope, v1alpha1.DefaultPauseScope))
	}
	if by := s.Status.Pause; by != nil && by.Source != v1alpha1.AnnotationPause {
		return by.Source + ": " + by.Reason
	}
	return ""
}

// write sets the annotation, or removes it.
func (p *pausable) write(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, name fleet.Name, value any) error {
	if o.DryRun == cluster.DryRunClient {
		return nil
	}
	body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.AnnotationPause: value}}})
	if err != nil {
		return err
	}
	if p.plural == "" {
		_, err = c.Core.CoreV1().Namespaces().Patch(cmd.Context(), name.Name, types.MergePatchType, body, o.Patch())
	} else {
		_, err = c.Resource(p.plural, name.Namespace).Patch(cmd.Context(), name.Name, types.MergePatchType, body, o.Patch())
	}
	if err != nil {
		return fmt.Errorf("annotate %s %s: %w", p.kind, name, err)
	}
	return nil
}
