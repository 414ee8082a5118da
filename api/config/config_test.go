package config

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestBadFilesSayTheFix holds the exact errors.
func TestBadFilesSayTheFix(t *testing.T) {
	for _, path := range files(t, "bad", 9) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := parse(t, path)
			if err == nil {
				t.Fatal("nothing was found wrong")
			}
			got, goldenPath := err.Error()+"\n", strings.TrimSuffix(path, ".yaml")+".txt"
			if *update {
				if err := os.WriteFile(goldenPath, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(goldenPath)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLeastFileMeansTheDefaults(t *testing.T) {
	got, err := parse(t, filepath.Join("testdata", "good", "least.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultController()
	want.Prometheus.URL = "http://prometheus.monitoring:9090"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestEveryFieldIsRead: the full file sets every field to something else than the default, so none can be forgotten.
func TestEveryFieldIsRead(t *testing.T) {
	got, err := parse(t, filepath.Join("testdata", "good", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	differs(t, "", reflect.ValueOf(got), reflect.ValueOf(DefaultController()))
	if got.Prometheus.HTTP.Authorization == nil || got.Prometheus.HTTP.Authorization.CredentialsFile != "/var/run/secrets/token" {
		t.Errorf("the HTTP client's configuration was not read: %+v", got.Prometheus.HTTP)
	}
	if !got.Prometheus.HTTP.FollowRedirects {
		t.Error("what the HTTP client's configuration leaves out has lost its default")
	}
}

// ofFields reports whether a field is a group of fields of ours.
func ofFields(t reflect.Type) bool {
	return t == reflect.TypeFor[Prometheus]() || t == reflect.TypeFor[Serving]() || t == reflect.TypeFor[Metrics]()
}

func differs(t *testing.T, path string, got, other reflect.Value) {
	t.Helper()
	for i := range got.NumField() {
		name := path + got.Type().Field(i).Name
		if ofFields(got.Field(i).Type()) {
			differs(t, name+".", got.Field(i), other.Field(i))
		} else if reflect.DeepEqual(got.Field(i).Interface(), other.Field(i).Interface()) {
			t.Errorf("%s is still the default", name)
		}
	}
}

// TestEveryFieldIsDocumented: the page for operators names each field of the file.
func TestEveryFieldIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var check func(path string, of reflect.Type)
	check = func(path string, of reflect.Type) {
		for f := range of.Fields() {
			name := path + f.Tag.Get("yaml")
			if ofFields(f.Type) {
				check(name+".", f.Type)
			} else if !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("docs/configuration.md has no line for %s", name)
			}
		}
	}
	check("", reflect.TypeFor[Controller]())
}

func TestMissingFile(t *testing.T) {
	if _, err := Load(filepath.Join("testdata", "nowhere.yaml")); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, path := range files(f, dir, 1) {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse("f", text); err == nil && len(c.Validate()) > 0 {
			t.Errorf("accepted what is not valid: %v", c.Validate())
		}
	})
}

func files(t testing.TB, dir string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(paths) < atLeast {
		t.Fatalf("%s: want at least %d files, found %d (%v)", dir, atLeast, len(paths), err)
	}
	return paths
}

func parse(t *testing.T, path string) (Controller, error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(filepath.Base(path), text)
}
