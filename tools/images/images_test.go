package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// trial is a program that takes a moment to build.
const trial = `package main

func main() { println("trial") }
`

// blobs reads an archive by its rules: each blob lies under its own digest.
func blobs(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if sum, ok := strings.CutPrefix(h.Name, "blobs/"); ok && digest(b) != strings.Replace(sum, "/", ":", 1) {
			t.Errorf("blob %s has digest %s", h.Name, digest(b))
		}
		out[h.Name] = b
	}
}

// read decodes the blob that a descriptor names.
func read[T any](t *testing.T, all map[string][]byte, d descriptor, mediaType string) T {
	t.Helper()
	var v T
	b, ok := all["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if !ok || int64(len(b)) != d.Size || d.MediaType != mediaType {
		t.Fatalf("descriptor %+v: want type %s, found %v with %d bytes", d, mediaType, ok, len(b))
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// files unpacks the layers of an image.
func files(t *testing.T, all map[string][]byte, m manifest, c imageConfig) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, content := map[string]*tar.Header{}, map[string][]byte{}
	for n, l := range m.Layers {
		z, err := gzip.NewReader(bytes.NewReader(all["blobs/"+strings.Replace(l.Digest, ":", "/", 1)]))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if digest(plain) != c.RootFS.DiffIDs[n] {
			t.Errorf("layer %d unpacks to %s, the configuration says %s", n, digest(plain), c.RootFS.DiffIDs[n])
		}
		r := tar.NewReader(bytes.NewReader(plain))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if content[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			headers[h.Name] = h
		}
	}
	return headers, content
}

// check opens an archive of an image and judges what is in it.
func check(t *testing.T, archive []byte, i image, r release, arches []string) {
	t.Helper()
	all := blobs(t, archive)
	var top index
	if err := json.Unmarshal(all["index.json"], &top); err != nil || len(top.Manifests) != 1 || string(all["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Fatalf("index.json %s: %v", all["index.json"], err)
	}
	if got, want := top.Manifests[0].Annotations["io.containerd.image.name"], "springtide.dev/"+i.Name+":"+r.Version; got != want {
		t.Errorf("the archive is imported as %q, want %q", got, want)
	}
	platforms := read[index](t, all, top.Manifests[0], indexType)
	var got []string
	for _, d := range platforms.Manifests {
		m := read[manifest](t, all, d, manifestType)
		c := read[imageConfig](t, all, m.Config, configType)
		if c.OS != "linux" || d.Platform == nil || *d.Platform != c.platform || c.Config.User != "65532:65532" ||
			!slices.Equal(c.Config.Entrypoint, []string{"/" + i.Name}) || !c.Created.Equal(r.Created) {
			t.Errorf("%s: configuration %+v of platform %+v", i.Name, c, d.Platform)
		}
		got = append(got, c.Architecture)
		for _, label := range []string{"title", "description", "source", "licenses", "version", "revision"} {
			if c.Config.Labels["org.opencontainers.image."+label] == "" {
				t.Errorf("%s: label %s is empty", i.Name, label)
			}
		}
		if c.Config.Labels["org.opencontainers.image.version"] != r.Version {
			t.Errorf("%s: labels %v, want version %s", i.Name, c.Config.Labels, r.Version)
		}
		headers, content := files(t, all, m, c)
		for name, h := range headers {
			if own := strings.TrimSuffix(name, "/") == strings.TrimPrefix(i.Folder, "/"); h.Mode&0o6000 != 0 || h.Mode&0o002 != 0 && name != "tmp/" || (h.Uid != 0) != (own && i.Folder != "") {
				t.Errorf("%s: %s has mode %o and owner %d", i.Name, name, h.Mode, h.Uid)
			}
			if h.Typeflag != tar.TypeDir && h.Mode&0o111 != 0 && name != i.Name {
				t.Errorf("%s: %s can be run: the image holds its binary and no shell", i.Name, name)
			}
			if !h.ModTime.Equal(r.Created) {
				t.Errorf("%s: %s is of %s, not of the commit", i.Name, name, h.ModTime)
			}
		}
		if h := headers["tmp/"]; h == nil || h.Mode != 0o1777 {
			t.Errorf("%s: /tmp is %+v", i.Name, h)
		}
		certificate, _ := pem.Decode(content["etc/ssl/certs/ca-certificates.crt"])
		if zones := content[strings.TrimPrefix(zonePath, "/")]; certificate == nil || !bytes.HasPrefix(zones, []byte("PK")) {
			t.Errorf("%s: no certificates, or no zone data (%d bytes)", i.Name, len(zones))
		}
		if b := content[i.Name]; !bytes.HasPrefix(b, []byte("\x7fELF")) || bytes.Contains(b, []byte("/lib64/ld-linux")) || bytes.Contains(b, []byte("/lib/ld-linux")) {
			t.Errorf("%s: the binary is no static ELF file", i.Name)
		}
	}
	if !slices.Equal(got, arches) {
		t.Errorf("%s: platforms %v, want %v", i.Name, got, arches)
	}
	t.Logf("%s: %.1f MiB", i.Name, float64(len(archive))/(1<<20))
}

// TestArchive builds a small program twice for both architectures: the archives are the same to the byte, and hold what an image of ours must.
func TestArchive(t *testing.T) {
	goroot, err := command(t.Context(), nil, "go", "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	r := release{Version: "1.2.3", Revision: "abc", Created: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)}
	i := image{Name: "trial", Package: ".", Title: "Trial", Description: "A trial", Folder: "/var/lib/trial"}
	var made [][]byte
	for range 2 {
		dir := t.TempDir()
		for name, text := range map[string]string{"main.go": trial, "go.mod": "module trial\n\ngo 1.26\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(dir)
		base, err := baseFiles(goroot)
		if err != nil {
			t.Fatal(err)
		}
		own := map[string][]entry{}
		for _, arch := range platforms {
			binary, err := build(t.Context(), dir, i, r, arch)
			if err != nil {
				t.Fatal(err)
			}
			own[arch] = ownFiles(i, binary)
		}
		var b bytes.Buffer
		if err := pack(&b, i, r, platforms, base, own); err != nil {
			t.Fatal(err)
		}
		made = append(made, b.Bytes())
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two builds of one source differ")
	}
	check(t, made[0], i, r, platforms)
}

// TestRealArchives opens the archives that `make images` built, when SPRINGTIDE_IMAGES names their folder.
func TestRealArchives(t *testing.T) {
	dir := os.Getenv("SPRINGTIDE_IMAGES")
	if dir == "" {
		t.Skip("set SPRINGTIDE_IMAGES to the folder of `make images`; make images-test does both")
	}
	t.Chdir(filepath.Join("..", ".."))
	r, err := thisRelease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		b, err := os.ReadFile(filepath.Join(dir, i.Name+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, i, r, platforms)
		if again := os.Getenv("SPRINGTIDE_IMAGES_AGAIN"); again != "" {
			if other, err := os.ReadFile(filepath.Join(again, i.Name+".tar")); err != nil || !bytes.Equal(b, other) {
				t.Errorf("%s: the second build differs (%v)", i.Name, err)
			}
		}
	}
}

// TestDockerfile holds the Dockerfile to the table: a stage an image, run in the same way, from the files that the archives hold.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, i := range images {
		if seen[i.Name] {
			t.Errorf("the table has %s twice", i.Name)
		}
		seen[i.Name] = true
		c := runConfigOf(i, release{})
		want := fmt.Sprintf("FROM base AS %s\nCOPY --from=build /out/%[1]s /\n", i.Name)
		if i.Folder != "" {
			want += fmt.Sprintf("COPY --from=build --chown=%s /out/%s%s %[3]s\n", c.User, i.Name, i.Folder)
		}
		want += fmt.Sprintf("WORKDIR %s\nENTRYPOINT [%q]\n", c.WorkingDir, c.Entrypoint[0])
		base := fmt.Sprintf("FROM scratch AS base\nENV %s\nUSER %s\n", strings.Join(c.Env, " "), c.User)
		for _, want := range []string{base, want} {
			if strings.Count(string(text), want) != 1 {
				t.Errorf("the Dockerfile has not one stage like this:\n%s", want)
			}
		}
	}
	if got := strings.Count(string(text), "FROM base AS "); got != len(images) {
		t.Errorf("the Dockerfile has %d images, the table %d", got, len(images))
	}
}

// TestLayOut: the files that the Dockerfile copies are those of the archives.
func TestLayOut(t *testing.T) {
	root := t.TempDir()
	entries := []entry{{Path: "/etc", Dir: true, Mode: 0o755}, {Path: "/etc/x", Mode: 0o644, Bytes: []byte("x")}, {Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky}}
	if err := layOut(root, entries); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "stat", "-c", "%a", root+"/etc/x", root+"/tmp").Output()
	if err != nil || string(out) != "644\n1777\n" {
		t.Errorf("modes %q: %v", out, err)
	}
}
