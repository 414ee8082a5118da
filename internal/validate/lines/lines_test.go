package lines

import (
	"reflect"
	"testing"
)

func TestStepsOfAPath(t *testing.T) {
	for path, want := range map[string][]string{
		"":                        nil,
		"spec":                    {"spec"},
		"spec.windows[3].start":   {"spec", "windows", "3", "start"},
		"spec.a[x.y/z].b":         {"spec", "a", "x.y/z", "b"},
		"spec.a[0][1]":            {"spec", "a", "0", "1"},
		"spec.broken[unfinished ": {"spec", "broken", "unfinished "},
	} {
		if got := Steps(path); !reflect.DeepEqual(got, want) {
			t.Errorf("Steps(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"mode", "metrics", "windows"}
	for name, want := range map[string]string{"moed": "mode", "Windows": "windows", "metric": "metrics", "schedule": "", "": ""} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
