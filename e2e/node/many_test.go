package node

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var containers = flag.Int("containers", 200, "how many containers start while the agent dies and returns")

// startsMany starts containers of offline while the agent is killed and returns. A virtual machine starts a real container in five seconds, so
// these are bare cgroups with a process each, in the cgroups that the kubelet makes for pods that wait for a ConfigMap. No container that is
// there when a cycle of the agent begins is unadjusted when it ends.
func startsMany(t *testing.T, c *cluster) {
	c.lend(t)
	address := c.agentAddress(t)
	// The watcher writes down, again and again, how many cycles the agent of which process has ended, and where each container may run.
	c.Script(t, `rm -f /tmp/many.*; setsid sh -c '
up() { read now rest </proc/uptime; }
while [ ! -e /tmp/many.end ]; do
	agent=$(pidof springtide-agent) cycles=$(`+readMetrics(address)+` | sed -n "s/^springtide_agent_cycle_seconds_count //p")
	up; echo "sample $now ${agent:--} ${cycles:--}"
	for d in /sys/fs/cgroup/kubepods/besteffort/pod*/bare; do
		read cpus <$d/cpuset.cpus.effective && echo "${d%/bare} $cpus"
	done 2>/dev/null
	sleep 0.2
done >/tmp/many.log; touch /tmp/many.done' >/dev/null 2>&1 &
setsid sh -c '
while [ ! -e /tmp/many.end ]; do
	for d in /sys/fs/cgroup/kubepods/besteffort/pod*; do
		[ -e /tmp/many.uids ] && ! [ -e $d/bare ] && grep -q "^${d##*/pod}$" /tmp/many.uids || continue
		echo +cpuset >$d/cgroup.subtree_control && mkdir $d/bare && sh -c "echo \$\$ >$d/bare/cgroup.procs; exec sleep 100000" &
	done
	sleep 0.2
done' >/dev/null 2>&1 &`)
	var uids strings.Builder
	for i := range *containers {
		pod := c.offline(fmt.Sprintf("many-%03d", i))
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		// A token's volume is a mount and two requests for each, and the emulated kubelet is slow enough.
		no := false
		pod.Spec.AutomountServiceAccountToken = &no
		pod.Spec.Volumes = []corev1.Volume{{Name: "never", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "never"}}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "never", MountPath: "/never"}} // the kubelet waits for what is mounted alone
		made, err := c.Client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&uids, made.UID)
		if i%20 == 19 {
			if err := c.Put(t.Context(), "/tmp/many.uids", 0o600, strings.NewReader(uids.String())); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 == 10 {
			c.Script(t, "kill -9 $(pidof springtide-agent) 2>/dev/null; true")
		}
	}
	if err := c.Put(t.Context(), "/tmp/many.uids", 0o600, strings.NewReader(uids.String())); err != nil {
		t.Fatal(err)
	}
	c.Took(t, fmt.Sprintf("%d pods are made, the agent was killed meanwhile", *containers))
	confined := `n=0; for d in /sys/fs/cgroup/kubepods/besteffort/pod*/bare; do read cpus <$d/cpuset.cpus.effective && [ "$cpus" = 4-7 ] && n=$((n+1)); done; echo $n`
	c.Eventually(t, "all containers are there and confined", func(ctx context.Context) (bool, error) {
		n, err := c.Run(ctx, confined)
		return strings.TrimSpace(n) == fmt.Sprint(*containers), err
	})
	cycles := func(ctx context.Context) float64 {
		m, err := c.agentMetrics(ctx, address)
		if err != nil {
			return 0
		}
		return sum(m, "springtide_agent_cycle_seconds_count")
	}
	from := 0.0
	c.Eventually(t, "a whole cycle has ended since", func(ctx context.Context) (bool, error) {
		now := cycles(ctx)
		if from == 0 || now < from { // no answer yet, or another process of the agent
			from = now
		}
		return from > 0 && now >= from+2, nil
	})
	c.Script(t, "touch /tmp/many.end; until [ -e /tmp/many.done ]; do sleep 0.2; done") // the last sample is whole
	log, err := c.Get(t.Context(), "/tmp/many.log")
	if err != nil {
		t.Fatal(err)
	}
	c.judgeMany(t, log)
	if t.Failed() {
		for line := range strings.Lines(log) {
			if strings.HasPrefix(line, "sample") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
	c.Script(t, `for d in /sys/fs/cgroup/kubepods/besteffort/pod*/bare; do kill -9 $(cat $d/cgroup.procs); done 2>/dev/null; sleep 1; rmdir /sys/fs/cgroup/kubepods/besteffort/pod*/bare`)
	none := int64(0)
	for i := range *containers {
		if err := c.Client.CoreV1().Pods("default").Delete(t.Context(), fmt.Sprintf("many-%03d", i), metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
	}
	c.recall(t)
	c.takeHome(t)
}

// judgeMany reads what the watcher wrote down.
func (c *cluster) judgeMany(t *testing.T, log string) {
	t.Helper()
	type sample struct {
		at      time.Duration
		process string // of the agent; "-" while there is none
		cycles  int
		known   bool
		outside map[string]bool
		all     int
	}
	var samples []*sample
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		switch {
		case len(f) == 4 && f[0] == "sample":
			s := &sample{process: f[2], outside: map[string]bool{}}
			var seconds float64
			_, _ = fmt.Sscan(f[1], &seconds)
			s.at = time.Duration(seconds * float64(time.Second))
			_, err := fmt.Sscan(f[3], &s.cycles)
			s.known = err == nil
			samples = append(samples, s)
		case len(f) == 2 && len(samples) > 0:
			s := samples[len(samples)-1]
			s.all++
			if f[1] != "4-7" {
				s.outside[f[0]] = true
			}
		}
	}
	longest, unadjusted, seen, cycles := time.Duration(0), 0, map[string]bool{}, 0
	since := map[string]time.Duration{}
	for i, s := range samples {
		if s.process == "-" {
			clear(since) // the agent is away: what starts now waits for its return
		}
		for d := range s.outside {
			seen[d] = true
			if _, ok := since[d]; !ok && s.process != "-" {
				since[d] = s.at
			}
		}
		for d, from := range since {
			if longest = max(longest, s.at-from); !s.outside[d] {
				delete(since, d)
			}
		}
		// Of two cycles that ended after a sample, the second began after it.
		for _, later := range samples[i+1:] {
			if !s.known || later.process != s.process || later.known && later.cycles < s.cycles {
				break
			}
			if !later.known || later.cycles < s.cycles+2 {
				continue
			}
			cycles++
			for d := range s.outside {
				if later.outside[d] {
					unadjusted++
					t.Errorf("container %s was unadjusted at %s, and after a whole cycle at %s", d, s.at, later.at)
				}
			}
			break
		}
	}
	last := samples[len(samples)-1]
	t.Logf("measure: %d containers, %d of them seen before the agent had adjusted them; over %d whole cycles %d stayed unadjusted; the longest wait while the agent ran was %.1f s",
		last.all, len(seen), cycles, unadjusted, longest.Seconds())
	if last.all != *containers || cycles == 0 {
		t.Errorf("%d containers and %d cycles were seen", last.all, cycles)
	}
}
