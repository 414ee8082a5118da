package node

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestArchive(t *testing.T) {
	entries := []entry{{name: "bin/"}, {name: "bin/guest", data: []byte("program")}, {name: "bin/sh", to: "guest"}}
	got, err := archive("springtide.dev/x:1", []string{"/bin/guest"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	again, err := archive("springtide.dev/x:1", []string{"/bin/guest"}, entries)
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("the same entries give other bytes, %v", err)
	}
	blobs := untar(t, got)
	if index := string(blobs["index.json"]); !strings.Contains(index, `"io.containerd.image.name":"springtide.dev/x:1"`) {
		t.Errorf("the index does not name the image: %s", index)
	}
	layer := false
	for name, data := range blobs {
		digest, isBlob := strings.CutPrefix(name, "blobs/sha256/")
		if isBlob && digest != hash(data) {
			t.Errorf("blob %s has other content", name)
		}
		layer = layer || isBlob && bytes.Contains(data, []byte("program"))
	}
	if !layer {
		t.Error("no layer holds the program")
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadPrompt(t *testing.T) {
	// The prompt may come in pieces, and a line of the answer may look like its beginning.
	got, err := readPrompt(iotest.OneByteReader(strings.NewReader("QEMU (qemu)\nsaved\n(qemu) ")))
	if err != nil || !strings.Contains(got, "saved") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readPrompt(strings.NewReader("QEMU ")); !errors.Is(err, io.EOF) {
		t.Errorf("an answer without a prompt: %v, want EOF", err)
	}
}

// TestArguments: a snapshot fits only the machine that it was made of, so all that may differ is the ports and the snapshot itself.
func TestArguments(t *testing.T) {
	img := Image{dir: "image"}
	fresh, restored := arguments(img, ports{1, 2}, MemoryMiB, false), arguments(img, ports{3, 4}, MemoryMiB, true)
	if !slices.Equal(restored[len(restored)-2:], []string{"-loadvm", snapshotName}) {
		t.Errorf("it does not continue from the snapshot: %v", restored)
	}
	for i, a := range fresh {
		if b := restored[i]; a != b && !strings.HasPrefix(a, "user,") {
			t.Errorf("%s in one, %s in the other", a, b)
		}
	}
	for _, want := range []string{"dist,src=0,dst=1,val=11", "dist,src=0,dst=2,val=21", "node,nodeid=3,memdev=m3,cpus=6-7"} {
		if !slices.Contains(fresh, want) {
			t.Errorf("no %s", want)
		}
	}
	for i, a := range fresh {
		if a == "-monitor" && filepath.IsAbs(strings.TrimPrefix(fresh[i+1], "unix:")) {
			t.Errorf("the monitor's path may be too long for a socket: %s", fresh[i+1])
		}
	}
}
