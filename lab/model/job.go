package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/internal/replay"
)

// JobSpec is one offline job: equal members that work independently of each other, so that any number of them helps.
type JobSpec struct {
	Name fleet.Name
	// Request is what one member asks for; it uses all of its CPU (and of its GPUs) as long as it runs.
	Request  fleet.Resources
	Priority fleet.JobPriority
	// Every is the work between two checkpoints, Save the median time to write one, Restore the time to read one at the start.
	// Checkpoints on the way are written in the background and cost nothing; the one at a recall is waited for.
	Every, Save, Restore time.Duration
	// Demand is all the work there is, in core-hours.
	Demand float64
}

// DefaultJobs divides a demand in core-hours among the three kinds of offline work that the lab knows.
func DefaultJobs(coreHours float64) []JobSpec {
	request := func(cores int64, gpu int64) fleet.Resources {
		return fleet.Resources{CPU: fleet.MilliCPU(1000 * cores), Memory: memoryPerCore * fleet.Bytes(cores), GPU: gpu, Pods: 1}
	}
	return []JobSpec{
		{
			Name: fleet.Name{Namespace: "research", Name: "train"}, Request: request(16, 2), Priority: fleet.PriorityHigh,
			Every: 15 * time.Minute, Save: 45 * time.Second, Restore: time.Minute, Demand: 0.2 * coreHours,
		},
		{
			Name: fleet.Name{Namespace: "research", Name: "spark"}, Request: request(16, 0), Priority: fleet.PriorityLow,
			Every: 10 * time.Minute, Save: 30 * time.Second, Restore: 30 * time.Second, Demand: 0.5 * coreHours,
		},
		{
			Name: fleet.Name{Namespace: "media", Name: "transcode"}, Request: request(8, 0), Priority: fleet.PriorityLow,
			Every: 2 * time.Minute, Save: 20 * time.Second, Restore: 10 * time.Second, Demand: 0.3 * coreHours,
		},
	}
}

// Job is a job at work. Times must not run backwards.
type Job struct {
	Spec JobSpec
	seed uint64
	// members are in the order in which they started.
	members []*member
	// saved and lost are in core-seconds.
	saved, lost float64
	done        bool
}

// member is one pod of a job.
type member struct {
	measure.Worker
	pod     string
	notices int
}

// work is what each member does.
func (j *Job) work() measure.Work {
	return measure.Work{Cores: j.Spec.Request.CPU.Cores(), Every: j.Spec.Every, Restore: j.Spec.Restore}
}

// NewJob returns a job that has not begun.
func NewJob(spec JobSpec, seed uint64) (*Job, error) {
	if spec.Request.CPU <= 0 || spec.Every <= 0 || spec.Save <= 0 || spec.Restore < 0 || !(spec.Demand > 0) {
		return nil, fmt.Errorf("job %s: cores, checkpoint interval, save time and demand must be positive", spec.Name)
	}
	return &Job{Spec: spec, seed: mix(seed ^ replay.Seed("job", spec.Name.String()))}, nil
}

func (j *Job) find(pod string) int {
	return slices.IndexFunc(j.members, func(m *member) bool { return m.pod == pod })
}

// Start adds a member. One that already works goes on.
func (j *Job) Start(pod string, at time.Time) {
	if j.find(pod) < 0 {
		j.members = append(j.members, &member{Worker: measure.StartWorker(j.work(), at), pod: pod})
	}
}

// Notice makes a member save its work and leave; the answer is when it will acknowledge. A second notice gets the same
// answer. The save time is lognormal around Spec.Save with σ = 0.35 (the slowest of a hundred takes 2.3 times the
// median). It is false for a pod that does not work here.
func (j *Job) Notice(pod string, at time.Time) (time.Time, bool) {
	i := j.find(pod)
	if i < 0 {
		return time.Time{}, false
	}
	m := j.members[i]
	var save time.Duration
	if !m.Noticed() {
		j.play(m, at)
		m.notices++
		z := rand.New(rand.NewPCG(j.seed, replay.Seed(pod, strconv.Itoa(m.notices)))).NormFloat64()
		save = time.Duration(float64(j.Spec.Save) * math.Exp(0.35*clip(z, 3.5)))
	}
	return m.Notice(at, save), true
}

// Resume takes a member's notice back.
func (j *Job) Resume(pod string, at time.Time) {
	if i := j.find(pod); i >= 0 {
		j.play(j.members[i], at)
		j.members[i].Resume()
	}
}

// End takes a member away. Its work since the last checkpoint is lost.
func (j *Job) End(pod string, at time.Time) {
	i := j.find(pod)
	if i < 0 {
		return
	}
	j.play(j.members[i], at)
	j.lost += j.members[i].Unsaved()
	j.members = slices.Delete(j.members, i, i+1)
}

// Advance plays all members up to at, and finishes the job when the demand is met.
func (j *Job) Advance(at time.Time) {
	for _, m := range j.members {
		j.play(m, at)
	}
	if !j.done && j.saved+j.unsaved() >= j.Spec.Demand*3600 {
		j.done = true
		j.saved = j.Spec.Demand * 3600
		for _, m := range j.members {
			m.Finish()
		}
	}
}

// play brings one member to a time.
func (j *Job) play(m *member, to time.Time) {
	if !j.done {
		j.saved += m.Play(j.work(), to)
	}
}

func (j *Job) unsaved() float64 {
	sum := 0.0
	for _, m := range j.members {
		sum += m.Unsaved()
	}
	return sum
}

// Done reports whether the demand is met.
func (j *Job) Done() bool { return j.done }

// UsedCores are the cores in use as of the last Advance: a member computes while it restores, works and saves, and idles once it has
// acknowledged or the job is done.
func (j *Job) UsedCores() float64 {
	sum := 0.0
	for _, m := range j.members {
		sum += j.memberCores(m)
	}
	return sum
}

// MemberCores are the cores that one member uses.
func (j *Job) MemberCores(pod string) float64 {
	if i := j.find(pod); i >= 0 {
		return j.memberCores(j.members[i])
	}
	return 0
}

func (j *Job) memberCores(m *member) float64 {
	if j.done {
		return 0
	}
	return m.Used(j.work())
}

// UsefulCoreHours is the work that is done and not lost: without restoring, saving, waiting to go, and what died with a member.
// There is no useful work beyond the demand.
func (j *Job) UsefulCoreHours() float64 { return min(j.Spec.Demand, (j.saved+j.unsaved())/3600) }

// LostCoreHours is the work that died with its member.
func (j *Job) LostCoreHours() float64 { return j.lost / 3600 }

// RemainingCoreHours is the demand that is not met yet.
func (j *Job) RemainingCoreHours() float64 { return j.Spec.Demand - j.UsefulCoreHours() }
