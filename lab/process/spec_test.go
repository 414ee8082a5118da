package process

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf is a pod with a command.
func podOf(command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "training", Name: "w", UID: "0123456789", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName: "n", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "c", Command: command}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// emptyDir gives a pod a directory of its own.
func emptyDir(p *corev1.Pod, name, path string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
}

// downward shows a pod one of its fields in a file.
func downward(p *corev1.Pod, name, path, file, field string) {
	emptyDir(p, name, path)
	p.Spec.Volumes[len(p.Spec.Volumes)-1].VolumeSource = corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: file, FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}},
	}}
}

func TestLayOut(t *testing.T) {
	p := podOf("train", "--data=/data/x", "--old=/data/old", "/database", "/data", "--name=$(NAME)", "$(NOBODY)")
	emptyDir(p, "data", "/data/")
	emptyDir(p, "old", "/data/old")
	emptyDir(p, AnswersVolume, "/answers")
	downward(p, "notices", "/notices", "notice", "metadata.annotations['springtide.dev/notice']")
	p.Spec.Volumes = append(p.Spec.Volumes,
		corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/host"}}},
		corev1.Volume{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/host"})
	c.Args = []string{"/host:/notices/notice"}
	c.Env = []corev1.EnvVar{
		{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "DIR", Value: "/data"},
	}
	l, err := layOut(p, "/lab/w", []string{"PATH=/bin"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"train", "--data=/lab/w/volumes/data/x", "--old=/lab/w/volumes/old", "/database", "/lab/w/volumes/data", "--name=w", "$(NOBODY)",
		"/var/host:/lab/w/volumes/notices/notice"}
	if !slices.Equal(l.command, want) {
		t.Errorf("command\n%q, want\n%q", l.command, want)
	}
	if want := []string{"PATH=/bin", "NAME=w", "DIR=/lab/w/volumes/data"}; !slices.Equal(l.env, want) {
		t.Errorf("environment %q, want %q", l.env, want)
	}
	if l.answers != "/lab/w/volumes/"+AnswersVolume || len(l.notes) != 1 || l.notes[0].path != "/lab/w/volumes/notices/notice" {
		t.Errorf("answers %q, notes %+v", l.answers, l.notes)
	}
}

func TestLayOutRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"restarts":       {func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }, "restartPolicy is Always: want Never"},
		"init container": {func(p *corev1.Pod) { p.Spec.InitContainers = make([]corev1.Container, 1) }, "1 init containers"},
		"volume": {func(p *corev1.Pod) {
			emptyDir(p, "v", "/v")
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}
		}, "volume v: want an emptyDir"},
		"escape":     {func(p *corev1.Pod) { downward(p, "v", "/v", "../x", "metadata.name") }, "volume v: item ../x"},
		"root mount": {func(p *corev1.Pod) { emptyDir(p, "v", "/") }, `mount "/" of volume v`},
		"sub path":   {func(p *corev1.Pod) { emptyDir(p, "v", "/v"); p.Spec.Containers[0].VolumeMounts[0].SubPath = "x" }, "no subPath"},
		"secret value": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{}}}
		}, "environment variable E"},
		"field": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
		}, `field "status.podIP"`},
	} {
		p := podOf("true")
		c.change(p)
		if _, err := layOut(p, "/lab/w", nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want it to say %q", name, err, c.says)
		}
	}
}

func TestRuns(t *testing.T) {
	two := podOf("true")
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Command: []string{"true"}})
	for _, c := range []struct {
		p    *corev1.Pod
		want bool
	}{{podOf("true"), true}, {podOf(), false}, {two, false}} {
		if got := Runs(&c.p.Spec); got != c.want {
			t.Errorf("%+v: %v", c.p.Spec.Containers, got)
		}
	}
}

func TestPodField(t *testing.T) {
	p := podOf("true")
	p.Labels["a/b"], p.Annotations["c"] = "label", "note"
	for path, want := range map[string]string{
		"metadata.name": "w", "metadata.namespace": "training", "metadata.uid": "0123456789", "spec.nodeName": "n",
		"metadata.labels['a/b']": "label", "metadata.annotations['c']": "note", "metadata.annotations['none']": "",
	} {
		if got, err := podField(p, path); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
}
