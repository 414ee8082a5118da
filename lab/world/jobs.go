package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
)

const (
	// offlineStart is the time from binding to running of an offline pod; reading its checkpoint is the job model's.
	offlineStart = 10 * time.Second
	// offlineGraceSeconds is what an evicted offline pod gets. One that has acknowledged its notice goes at once.
	offlineGraceSeconds = 30
	// demandOfFleet is the offline work that there is, as a share of what the whole fleet could do in the world's time: more than the
	// offline machines can do alone, less than would fill the fleet.
	demandOfFleet = 0.7
	// role is the only role of every job here.
	role = "worker"
)

// job is one offline job: its play, and what the world wrote for it.
type job struct {
	spec model.JobSpec
	play *model.Job
	// home is the number of members that the offline machines hold, most what the job could use.
	home, most int32
	// deaf jobs do not read notices: they work until they are evicted.
	deaf bool
	// saved is when a checkpoint was last announced.
	saved time.Time
	// number counts the jobs of a kind, from 1; next is the one that came after this one was done.
	number int
	next   *job
	// made says that the API server has it; its write sets it, under the table's lock.
	made bool
	// usefulBefore and lostBefore are the core-hours of the warm-up, which do not count.
	usefulBefore, lostBefore float64
}

// newJobs makes the jobs and divides the offline machines among them by their demand. Transcoding reads no notices: it loses two minutes
// of work at most.
func (w *World) newJobs() error {
	var home, fleetCores float64
	for _, m := range w.machines {
		fleetCores += coresPerNode
		if m.pool == offlinePool {
			home += coresPerNode
		}
	}
	demand := demandOfFleet * fleetCores * w.end.Sub(w.start).Hours()
	for _, spec := range model.DefaultJobs(demand) {
		play, err := model.NewJob(spec, w.options.Seed)
		if err != nil {
			return err
		}
		share, cores := spec.Demand/demand, spec.Request.CPU.Cores()
		j := &job{spec: spec, play: play, deaf: spec.Name.Name == "transcode", saved: w.start, number: 1}
		j.home = int32(share * home / cores)
		j.most = max(1, int32(math.Ceil(share*fleetCores/cores)))
		w.addJob(j)
	}
	w.demand = demand
	return nil
}

func (w *World) addJob(j *job) {
	w.jobs = append(w.jobs, j)
	w.jobByName[j.spec.Name] = j
}

// nextJob is the job of the same kind and size that its owner hands in when one is done. Offline work does not end with a job: without the next one
// lent machines would stand idle. The account knows of its demand.
func (w *World) nextJob(j *job, now time.Time) (*job, error) {
	spec := j.spec
	spec.Name.Name = fmt.Sprintf("%s-%d", strings.TrimSuffix(spec.Name.Name, fmt.Sprintf("-%d", j.number)), j.number+1)
	play, err := model.NewJob(spec, w.options.Seed+uint64(j.number))
	if err != nil {
		return nil, err
	}
	j.next = &job{spec: spec, play: play, home: j.home, most: j.most, deaf: j.deaf, saved: now, number: j.number + 1}
	w.addJob(j.next)
	w.demand += spec.Demand
	w.truth.MoreOfflineWork(spec.Demand)
	return j.next, nil
}

// workload is the Job: any number of equal members, without a number of completions. An eviction is no failure, and a member that is
// leaving is replaced only once it is gone.
func (j *job) workload() *batchv1.Job {
	grace, backoff, replace := int64(offlineGraceSeconds), int32(1000), batchv1.Failed
	priority := priorityOfflineLow
	if j.spec.Priority == fleet.PriorityHigh {
		priority = priorityOfflineHigh
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.spec.Name.Namespace, Name: j.spec.Name.Name},
		Spec: batchv1.JobSpec{
			Parallelism:          &j.home,
			BackoffLimit:         &backoff,
			PodReplacementPolicy: &replace,
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelApp: j.spec.Name.Name}},
				Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					PriorityClassName:             priority,
					TerminationGracePeriodSeconds: &grace,
					Containers:                    []corev1.Container{container(j.spec.Request)},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
							MatchExpressions: []corev1.NodeSelectorRequirement{
								{Key: v1alpha1.LabelOffline, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}},
							},
						}}},
					}},
					Tolerations: []corev1.Toleration{{
						Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpEqual, Value: v1alpha1.TaintHolderOffline,
						Effect: corev1.TaintEffectNoSchedule,
					}},
				},
			},
		},
	}
}

// elasticJob lets Springtide resize the Job. Its least is half of what the offline machines hold: the rest may leave them for a while.
func (j *job) elasticJob() *v1alpha1.ElasticJob {
	priority := "Low"
	if j.spec.Priority == fleet.PriorityHigh {
		priority = "High"
	}
	return &v1alpha1.ElasticJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.spec.Name.Namespace, Name: j.spec.Name.Name},
		Spec: v1alpha1.ElasticJobSpec{
			Priority: priority,
			Members: []v1alpha1.JobMember{{
				Role: role, Min: j.home / 2, Max: j.most,
				WorkloadRef: v1alpha1.TargetRef{APIVersion: "batch/v1", Kind: "Job", Name: j.spec.Name.Name},
			}},
			Checkpoint: &v1alpha1.Checkpoint{Seconds: int32(j.spec.Save.Seconds())},
		},
	}
}

// buildJobs makes the offline work.
func (w *World) buildJobs(ctx context.Context) error {
	var writes []write
	for _, j := range w.jobs {
		writes = append(writes, w.makeJob(j))
	}
	return apply(ctx, writes)
}

// makeJob hands one job in.
func (w *World) makeJob(j *job) write {
	return func(ctx context.Context) error {
		work := j.workload()
		work.Spec.Template.Spec.SchedulerName = w.options.schedulerName()
		if _, err := w.api.core.BatchV1().Jobs(j.spec.Name.Namespace).Create(ctx, work, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make job %s: %w", j.spec.Name, err)
		}
		if err := w.api.create(ctx, "elasticjobs", j.elasticJob()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		w.table.mark(func() { j.made = true })
		return nil
	}
}

// notice is the checkpoint notice in a pod's annotation.
type notice struct {
	Loan     string    `json:"loan"`
	Epoch    int64     `json:"epoch"`
	Deadline time.Time `json:"deadline"`
}

// followNotices lets the members of the jobs begin, read their notices, save and acknowledge. It returns what they write.
func (w *World) followNotices(now time.Time) []write {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	var writes []write
	for _, p := range w.table.pods {
		j := w.jobByName[p.owner]
		if p.kind != offline || j == nil || !p.ready || p.finished() {
			continue
		}
		if !p.begun {
			p.begun = true
			j.play.Start(p.object.Name, p.readyAt)
		}
		if !j.deaf {
			writes = append(writes, w.followNotice(j, p, now)...)
		}
	}
	return writes
}

// followNotice answers the newest notice. A notice whose loan has moved on to another epoch was taken back: the member works on.
func (w *World) followNotice(j *job, p *pod, now time.Time) []write {
	var n notice
	if text := p.object.Annotations[v1alpha1.AnnotationNotice]; text != "" && json.Unmarshal([]byte(text), &n) == nil && !w.table.stands(&n) {
		n = notice{}
	}
	switch {
	case n.Epoch == 0 && p.noticed != 0:
		j.play.Resume(p.object.Name, now)
		p.noticed = 0
	case n.Epoch != 0 && n.Epoch != p.noticed:
		if at, ok := j.play.Notice(p.object.Name, now); ok {
			p.noticed, p.ackAt, p.acked = n.Epoch, at, false
		}
	}
	if p.noticed == 0 || p.acked || p.ackAt.After(now) {
		return nil
	}
	o, epoch := p.object, strconv.FormatInt(p.noticed, 10)
	patch := mustJSON(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "annotations": map[string]string{v1alpha1.AnnotationAck: epoch},
	}})
	return []write{func(ctx context.Context) error {
		_, err := w.api.core.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("acknowledge the notice of pod %s/%s: %w", o.Namespace, o.Name, err)
		}
		w.table.mark(func() { p.acked = true })
		return nil
	}}
}

// stands reports whether the loan of a notice still wants its parcel back at that epoch; the caller holds the lock.
func (t *table) stands(n *notice) bool {
	for _, l := range t.loans {
		if l.Name == n.Loan {
			phase := fleet.Phase(l.Status.Phase)
			return l.Status.Epoch == n.Epoch && phase != fleet.Lent && !phase.Ended()
		}
	}
	return false
}

// work plays the jobs up to now: members that are gone end, jobs whose demand is met succeed and are followed by the next of their kind, and new
// checkpoints are announced.
func (w *World) work(now time.Time) ([]write, error) {
	var writes []write
	for _, j := range slices.Clone(w.jobs) {
		j.play.Advance(now)
		if now.Sub(j.saved) >= j.spec.Every && j.play.UsedCores() > 0 {
			j.saved = now
			writes = append(writes, func(ctx context.Context) error {
				return w.api.merge(ctx, "elasticjobs", j.spec.Name.Namespace, j.spec.Name.Name, map[string]any{"metadata": map[string]any{
					"annotations": map[string]string{v1alpha1.AnnotationCheckpoint: now.Format(time.RFC3339)},
				}})
			})
		}
		if j.play.Done() {
			writes = append(writes, w.succeed(j, now)...)
			if j.next == nil {
				if _, err := w.nextJob(j, now); err != nil {
					return nil, err
				}
			}
		}
	}
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	for _, j := range w.jobs {
		if !j.made {
			writes = append(writes, w.makeJob(j))
		}
	}
	return writes, nil
}

// succeed ends the members of a job whose work is done.
func (w *World) succeed(j *job, now time.Time) []write {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	var writes []write
	for _, p := range w.table.pods {
		if p.owner != j.spec.Name || p.kind != offline || p.kubelet || !p.ready || p.gone || p.finished() || !p.goneAt.IsZero() {
			continue
		}
		patch := w.patchStatus(p.object, w.ended(p, corev1.PodSucceeded, now))
		writes = append(writes, func(ctx context.Context) error {
			if err := patch(ctx); err != nil {
				return err
			}
			w.table.mark(func() { p.gone = true })
			return nil
		})
	}
	return writes
}
