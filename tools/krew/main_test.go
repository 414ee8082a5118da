package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestManifest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "springtide-linux-arm64.tar.gz")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := manifest(&out, "v0.1.0", "https://releases.example/springtide/", []string{path}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind string
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, Sha256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	p := got.Spec.Platforms
	if got.Kind != "Plugin" || got.Spec.Version != "v0.1.0" || len(p) != 1 || p[0].Selector.MatchLabels["arch"] != "arm64" || p[0].Bin != "kubectl-springtide" ||
		p[0].URI != "https://releases.example/springtide/v0.1.0/springtide-linux-arm64.tar.gz" ||
		p[0].Sha256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("%+v in\n%s", got, &out)
	}
	for _, bad := range [][2]string{{"0.1", path}, {"v0.1.0", "x.zip"}} {
		if err := manifest(&out, bad[0], "https://x", []string{bad[1]}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
