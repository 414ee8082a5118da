package apitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/internal/validate/offline"
)

// TestTransitions judges changes: which an API server lets through (want.txt is empty) and which it refuses, with which
// sentence. The fencing of leaders, the epochs and the phases of loans depend on these rules.
func TestTransitions(t *testing.T) {
	definitions, err := offline.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "transitions", "*.txtar"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("want at least 20 transitions, found %d (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			old, now := object(t, archive, "old.yaml"), object(t, archive, "new.yaml")
			d := definitions[schema.FromAPIVersionAndKind(now["apiVersion"].(string), now["kind"].(string)).GroupKind()]
			if errs := d.Create(old); len(errs) > 0 {
				t.Fatalf("old.yaml is no valid object: %v", errs)
			}
			var got strings.Builder
			for _, e := range d.Update(now, old) {
				got.WriteString(e.Field + ": " + e.Detail + "\n")
			}
			want := &archive.Files[len(archive.Files)-1]
			if scripttest.Updates() {
				want.Data = []byte(got.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got.String() != string(want.Data) {
				t.Errorf("got:\n%swant:\n%s", got.String(), want.Data)
			}
		})
	}
}

func object(t *testing.T, a *txtar.Archive, name string) map[string]any {
	t.Helper()
	for _, f := range a.Files {
		if f.Name != name {
			continue
		}
		out := map[string]any{}
		if err := yaml.UnmarshalStrict(f.Data, &out); err != nil {
			t.Fatal(err)
		}
		return whole(out).(map[string]any)
	}
	t.Fatalf("no %s", name)
	return nil
}

// whole turns the numbers that the YAML reader gives into the integers that the API server reads.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}
