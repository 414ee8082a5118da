package process

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/agent/notice"
)

const (
	// AnswersVolume is the name of the volume (an emptyDir) in which a process leaves its answers: the files ack, heartbeat and checkpoint,
	// each with the text that the annotation of that name takes.
	AnswersVolume = notice.Volume
	// JobLabel on a pod names the ElasticJob, in the pod's namespace, that its checkpoints are announced on.
	JobLabel = "springtide.example/elastic-job"
)

// Runs reports whether a pod is one to run: it has one container, and that has a command.
func Runs(s *corev1.PodSpec) bool {
	return len(s.Containers) == 1 && len(s.Containers[0].Command) > 0
}

// layout is where a pod's files are and how its process is called.
type layout struct {
	dir     string // the pod's own
	log     string
	answers string // empty without the volume
	notes   []note
	create  []string // directories to make
	command []string
	env     []string
}

// note is a file that shows a field of the pod and follows it; shown is what the field said when it was written last.
type note struct {
	path, field string
	shown       *string
}

// layOut reads a pod's spec; dir is to be the pod's own directory. env is the environment that the pod's stands on.
func layOut(p *corev1.Pod, dir string, env []string) (*layout, error) {
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return nil, fmt.Errorf("restartPolicy is %s: want Never, whoever made the pod makes another", p.Spec.RestartPolicy)
	}
	if n := len(p.Spec.InitContainers); n > 0 {
		return nil, fmt.Errorf("there are %d init containers: want none", n)
	}
	l := &layout{dir: dir, log: filepath.Join(dir, "log"), create: []string{dir}}
	volumes := map[string]string{}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		path, err := l.volume(v)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		volumes[v.Name] = path
	}
	c := &p.Spec.Containers[0]
	rename, err := renamer(c.VolumeMounts, volumes)
	if err != nil {
		return nil, err
	}
	l.env = slices.Clone(env)
	var own []string
	for i := range c.Env {
		e := &c.Env[i]
		value := e.Value
		if e.ValueFrom != nil {
			if value, err = fieldOf(p, e.ValueFrom.FieldRef); err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", e.Name, err)
			}
		}
		value = rename(value)
		l.env, own = append(l.env, e.Name+"="+value), append(own, "$("+e.Name+")", value)
	}
	// As a kubelet does: $(NAME) in the command stands for the container's variables, what is none stays.
	expand := strings.NewReplacer(own...)
	for _, arg := range slices.Concat(c.Command, c.Args) {
		l.command = append(l.command, expand.Replace(rename(arg)))
	}
	return l, nil
}

// volume finds a directory for one volume.
func (l *layout) volume(v *corev1.Volume) (string, error) {
	path := filepath.Join(l.dir, "volumes", v.Name)
	switch {
	case v.HostPath != nil:
		path = v.HostPath.Path
	case v.EmptyDir != nil:
		if v.Name == AnswersVolume {
			l.answers = path
		}
	case v.DownwardAPI != nil:
		for i := range v.DownwardAPI.Items {
			item := &v.DownwardAPI.Items[i]
			if item.FieldRef == nil {
				return "", fmt.Errorf("item %s: want a fieldRef", item.Path)
			}
			if !filepath.IsLocal(item.Path) {
				return "", fmt.Errorf("item %s: want a path below the volume", item.Path)
			}
			l.notes = append(l.notes, note{path: filepath.Join(path, item.Path), field: item.FieldRef.FieldPath})
		}
	case v.Projected != nil && strings.HasPrefix(v.Name, "kube-api-access-"):
		// Every pod gets one; a process here has no way to the API server.
	default:
		return "", fmt.Errorf("want an emptyDir, a downwardAPI or a hostPath")
	}
	l.create = append(l.create, path)
	return path, nil
}

// renamer puts directories of this machine in the place of mount paths.
func renamer(mounts []corev1.VolumeMount, volumes map[string]string) (func(string) string, error) {
	var paths []string
	here := map[string]string{}
	for i := range mounts {
		m := &mounts[i]
		path := strings.TrimRight(m.MountPath, "/")
		if path == "" || m.SubPath != "" || m.SubPathExpr != "" {
			return nil, fmt.Errorf("mount %q of volume %s: want a directory below the root, and no subPath", m.MountPath, m.Name)
		}
		here[path] = volumes[m.Name]
		paths = append(paths, regexp.QuoteMeta(path))
	}
	if len(paths) == 0 {
		return func(s string) string { return s }, nil
	}
	// A mount at /data says nothing of /database; of /data and /data/old the longer is meant.
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	mounted := regexp.MustCompile("(" + strings.Join(paths, "|") + `)([^\w.-]|$)`)
	return func(s string) string {
		return mounted.ReplaceAllStringFunc(s, func(found string) string {
			if path, ok := here[found]; ok {
				return path
			}
			last := len(found) - 1 // the one character after the path
			return here[found[:last]] + found[last:]
		})
	}, nil
}

// fieldOf reads a field of a pod by the names of the downward API.
func fieldOf(p *corev1.Pod, ref *corev1.ObjectFieldSelector) (string, error) {
	if ref == nil {
		return "", fmt.Errorf("want a value or a fieldRef")
	}
	return podField(p, ref.FieldPath)
}

// podField reads the fields that the downward API knows, as far as a pod of the lab has them.
func podField(p *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.annotations": p.Annotations, "metadata.labels": p.Labels} {
		if key, ok := strings.CutPrefix(path, prefix+"['"); ok {
			if key, ok = strings.CutSuffix(key, "']"); ok {
				return values[key], nil
			}
		}
	}
	return "", fmt.Errorf("field %q: want metadata.name, .namespace, .uid, spec.nodeName, metadata.labels['KEY'] or metadata.annotations['KEY']", path)
}
