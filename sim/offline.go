package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/sim/scenario"
)

// job is one offline job at work.
type job struct {
	spec *scenario.Job
	name fleet.Name
	work measure.Work
	// demand is all the work there is, in core-seconds; saved and lost what became of it.
	demand, saved, lost float64
	done                bool
	request             fleet.Resources // of one member
	// desired is the parallelism, most what the job could use; members are those that do not leave, ending those that do.
	desired, most int32
	members       []int32
	ending, made  int
	// gang is how its minimum stands by the last plan, partial since when some of it runs and not all.
	gang    fleet.Gang
	partial int32
	// busy are the members that compute; one that has acknowledged its notice idles.
	busy       int
	checkpoint time.Time
	recalled   fleet.Known[time.Time]
}

func (j *job) id() fleet.JobID { return fleet.JobID(j.name.String()) }

func (w *World) buildJobs() {
	cores := w.b.Cores()
	for i := range w.b.Jobs {
		spec := &w.b.Jobs[i]
		j := job{spec: spec, name: fleet.Name{Namespace: spec.Namespace, Name: spec.Name},
			work:    measure.Work{Cores: float64(spec.Cores), Every: time.Duration(spec.Every), Restore: time.Duration(spec.Restore)},
			request: spec.Request(), demand: spec.Share * cores * scenario.WarmUp.Seconds(), checkpoint: w.now}
		j.most = int32(spec.Share*cores/float64(spec.Cores)) + 1
		w.jobs = append(w.jobs, j)
	}
	slices.SortFunc(w.jobs, func(a, b job) int { return a.name.Compare(b.name) })
	w.jobShapes()
}

// dueWork gives each job its work of the scored time. The rest of the warm-up's work, in which there is always enough,
// is no part of it.
func (w *World) dueWork() {
	cores := w.b.Cores()
	for i := range w.jobs {
		j := &w.jobs[i]
		useful, _ := w.jobWork(j)
		j.demand = useful + j.spec.Share*w.b.DemandShare*cores*w.b.Duration().Seconds()
		j.done = false
	}
}

// refill keeps a job at its parallelism: a member that leaves is replaced only once it is gone.
func (w *World) refill(i int) {
	j := &w.jobs[i]
	if lack := j.spec.Gang - len(j.members); lack > 0 && !j.done {
		if int(j.desired) < j.spec.Gang || j.ending > 0 || !w.addGang(i, lack) {
			w.shed(j)
			return // all of it or nothing
		}
	}
	for len(j.members)+j.ending < int(j.desired) && !j.done {
		if !w.addMember(i, w.rooms.members[i]) {
			break // the scheduler would leave it waiting, and nothing waits for it
		}
	}
	w.shed(j)
}

// shed ends the youngest members of a job beyond its parallelism.
func (w *World) shed(j *job) {
	for len(j.members) > int(j.desired) {
		w.endMember(j.members[len(j.members)-1])
	}
}

// addGang starts what a gang lacks, as a whole or not at all.
func (w *World) addGang(i, lack int) bool {
	refs, at, ok := w.rooms.gang(w.rooms.members[i], lack)
	for k, ref := range refs {
		w.member(i, at[k], ref)
	}
	return ok
}

// addMember starts one more member of a job where a pod of a shape finds room, if it does.
func (w *World) addMember(i int, shape place.ClassID) bool {
	room, n, ok := w.rooms.place(shape)
	if ok {
		w.member(i, n, room)
	}
	return ok
}

// member makes a member of a job on a machine that has room for it.
func (w *World) member(i int, n int32, room place.PodRef) {
	j := &w.jobs[i]
	j.made++
	id := w.newPod(pod{name: fleet.Name{Namespace: j.name.Namespace, Name: fmt.Sprintf("%s-%07d", j.name.Name, j.made)}, kind: offline,
		owner: int32(i), cores: int32(j.spec.Cores)})
	j.members = append(j.members, id)
	w.bind(id, n, room)
	p := &w.pods[id]
	p.bound, p.readyAt = w.tick, w.tick+ticks(offlineStart)
	w.starting.push(p.readyAt, id, p.uid)
}

// endMember ends a member: at once when it has saved its work.
func (w *World) endMember(id int32) {
	p := &w.pods[id]
	if p.leaving {
		return
	}
	j := &w.jobs[p.owner]
	k := slices.Index(j.members, id)
	j.members = slices.Delete(j.members, k, k+1)
	j.ending++
	after := offlineGrace
	if p.worker.Acked(w.now) {
		after = tick
	}
	w.leave(id, after)
}

// endWorker takes a member away for good: its work since the last checkpoint is lost.
func (w *World) endWorker(id int32) {
	p := &w.pods[id]
	if !p.begun {
		return
	}
	j := &w.jobs[p.owner]
	w.work(p)
	if !j.done {
		j.lost += p.worker.Unsaved()
	}
	if p.ackEpoch == 0 {
		j.busy--
	}
}

// work plays a member up to now.
func (w *World) work(p *pod) {
	if j := &w.jobs[p.owner]; p.begun && !j.done {
		j.saved += p.worker.Play(j.work, w.now)
	}
}

// notify gives a member notice; resume takes it back.
func (w *World) notify(id int32, loan fleet.LoanID, epoch int64) {
	p := &w.pods[id]
	p.noticeLoan, p.noticeEpoch = loan, epoch
	j := &w.jobs[p.owner]
	if !p.begun || j.spec.Deaf || w.on(scenario.DeafMembers) != nil || w.on(scenario.Heartbeats) != nil {
		return
	}
	w.work(p)
	if p.worker.Noticed() {
		w.noticed = append(w.noticed, podRef{id, p.uid}) // a further notice gets an answer of its own
	} else {
		// The least time, and up to half as long again.
		p.worker.Notice(w.now, time.Duration(float64(j.spec.Save)*(1+0.5*w.saves.Float64())))
		w.noticed = append(w.noticed, podRef{id, p.uid})
	}
}

func (w *World) resume(id int32) {
	p := &w.pods[id]
	if !p.begun {
		return
	}
	w.work(p)
	if p.ackEpoch != 0 {
		w.jobs[p.owner].busy++
	}
	p.worker.Resume()
	p.noticeLoan, p.noticeEpoch, p.ackEpoch, p.deadline = "", 0, 0, time.Time{}
}

// followNotices lets members that have saved their work say so.
func (w *World) followNotices() {
	w.noticed = slices.DeleteFunc(w.noticed, func(r podRef) bool {
		p := &w.pods[r.id]
		switch {
		case p.uid != r.uid || !p.worker.Noticed():
			return true
		case !p.worker.Acked(w.now):
			return false
		}
		w.work(p)
		if p.ackEpoch == 0 {
			w.jobs[p.owner].busy--
		}
		p.ackEpoch = p.noticeEpoch
		w.changed = true
		return true
	})
	if w.tick%perMinute == 0 {
		w.advanceJobs()
	}
}

// finishTicks is how often it is looked whether a job is done: members are played only when something happens to them.
const finishTicks = 30 * perMinute

// advanceJobs announces checkpoints and finishes jobs whose demand is met.
func (w *World) advanceJobs() {
	for i := range w.jobs {
		j := &w.jobs[i]
		if j.done {
			continue
		}
		if w.now.Sub(j.checkpoint) >= time.Duration(j.spec.Every) && j.busy > 0 {
			j.checkpoint = w.now
		}
		if w.tick%finishTicks != 0 {
			continue
		}
		if useful, _ := w.jobWork(j); useful >= j.demand {
			j.done, j.saved, j.desired = true, j.demand, 0
			for len(j.members) > 0 {
				w.endMember(j.members[len(j.members)-1])
			}
		}
	}
}

// jobWork is what a job has done that is not lost, and what is lost, in core-seconds.
func (w *World) jobWork(j *job) (useful, lost float64) {
	if j.done {
		return j.demand, j.lost
	}
	unsaved := 0.0
	for id := range w.pods {
		if p := &w.pods[id]; p.kind == offline && p.begun && &w.jobs[p.owner] == j {
			w.work(p)
			unsaved += p.worker.Unsaved()
		}
	}
	return min(j.demand, j.saved+unsaved), j.lost
}

// offlineWork is the useful and the lost work of all jobs so far, in core-seconds.
func (w *World) offlineWork() (useful, lost float64) {
	for i := range w.jobs {
		u, l := w.jobWork(&w.jobs[i])
		useful, lost = useful+u, lost+l
	}
	return useful, lost
}

// offlineCores are the cores that offline work uses.
func (w *World) offlineCores() float64 {
	sum := 0.0
	for i := range w.jobs {
		if j := &w.jobs[i]; !j.done {
			sum += float64(j.busy) * j.work.Cores
		}
	}
	return sum
}

// byPriority are the jobs in the order in which they are served.
func (w *World) byPriority() []int {
	out := make([]int, len(w.jobs))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.jobs[b].spec.PriorityOf(), w.jobs[a].spec.PriorityOf()), cmp.Compare(a, b))
	})
	return out
}
