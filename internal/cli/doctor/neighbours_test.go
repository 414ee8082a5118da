package doctor

import (
	"testing"
)

func TestDoctorJudgesDeschedulers(t *testing.T) {
	profile := func(args, enabled string) string {
		return "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: default\n  pluginConfig:\n  - name: RemovePodsViolatingNodeTaints\n    args: {" + args +
			"}\n  plugins:\n    deschedule:\n      enabled: [" + enabled + "]\n"
	}
	for name, c := range map[string]struct {
		text             string
		is, acts, broken bool
	}{
		"no policy":                  {"kind: ConfigMap", false, false, false},
		"the plugin is off":          {profile("", "RemoveDuplicates"), true, false, false},
		"the plugin is on":           {profile("", "RemovePodsViolatingNodeTaints"), true, true, false},
		"another taint is left out":  {profile(`excludedTaints: ["dedicated=gpu"]`, "RemovePodsViolatingNodeTaints"), true, true, false},
		"one of ours is left out":    {profile(`excludedTaints: ["springtide.dev/holder"]`, "RemovePodsViolatingNodeTaints"), true, true, false},
		"ours are left out":          {profile(`excludedTaints: ["springtide.dev/holder=offline", "springtide.dev/fenced"]`, "RemovePodsViolatingNodeTaints"), true, false, false},
		"ours of another value":      {profile(`excludedTaints: ["springtide.dev/holder=online", "springtide.dev/fenced"]`, "RemovePodsViolatingNodeTaints"), true, true, false},
		"another value is looked at": {profile(`includedTaints: ["springtide.dev/holder=online"]`, "RemovePodsViolatingNodeTaints"), true, false, false},
		"others alone are looked at": {profile(`includedTaints: ["maintenance"]`, "RemovePodsViolatingNodeTaints"), true, false, false},
		"as v1alpha1 has it":         {"apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies:\n  RemovePodsViolatingNodeTaints:\n    enabled: true\n", true, true, false},
		"as v1alpha1, off":           {"apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies:\n  RemovePodsViolatingNodeTaints:\n    enabled: false\n", true, false, false},
		"no YAML":                    {"kind: DeschedulerPolicy\n\tprofiles", true, false, true},
	} {
		is, acts, err := judgeDescheduler(c.text)
		if is != c.is || acts != c.acts || (err != nil) != c.broken {
			t.Errorf("%s: a policy %v, evicts %v, error %v", name, is, acts, err)
		}
	}
}
