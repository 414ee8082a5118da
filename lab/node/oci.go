package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// WorkImage is in every machine: busybox with its applets, and the guest program as a workload (`guest work`).
const WorkImage = "springtide.dev/lab/work:1"

// pauseImage is the first container of every pod; containerd.toml names it.
const pauseImage = "springtide.dev/lab/pause:1"

// entry is one file of an image; a symbolic link when to is set, a directory when neither data nor to is.
type entry struct {
	name string
	data []byte
	to   string
}

// archive packs one layer into an OCI archive that containerd imports under the given name. The same entries give the same bytes.
func archive(name string, entrypoint []string, entries []entry) ([]byte, error) {
	layer, err := pack(entries)
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	describe := func(mediaType string, blob []byte) object {
		return object{"mediaType": mediaType, "digest": "sha256:" + hash(blob), "size": len(blob)}
	}
	config, err := json.Marshal(object{
		"architecture": "amd64", "os": "linux", "created": time.Unix(0, 0).UTC(),
		"config": object{"Entrypoint": entrypoint, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + hash(layer)}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": describe("application/vnd.oci.image.config.v1+json", config),
		"layers": []object{describe("application/vnd.oci.image.layer.v1.tar", layer)},
	})
	if err != nil {
		return nil, err
	}
	root := describe("application/vnd.oci.image.manifest.v1+json", manifest)
	root["platform"] = object{"architecture": "amd64", "os": "linux"}
	root["annotations"] = object{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []object{root}})
	if err != nil {
		return nil, err
	}
	out := []entry{{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {name: "index.json", data: index}}
	for _, blob := range [][]byte{layer, config, manifest} {
		out = append(out, entry{name: "blobs/sha256/" + hash(blob), data: blob})
	}
	return pack(out)
}

func hash(blob []byte) string {
	sum := sha256.Sum256(blob)
	return hex.EncodeToString(sum[:])
}

// pack writes a tar; every file may be executed, since images hold little else.
func pack(entries []entry) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		switch {
		case e.to != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.to
		case e.data == nil:
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	return buf.Bytes(), w.Close()
}

// writeImages packs the pause and the work image into a directory of the guest's disk.
func writeImages(root string, dir string, guest []byte, applets []string) error {
	shell, err := fs.ReadFile(os.DirFS("/"), busybox[1:])
	if err != nil {
		return err
	}
	// The directories that runc and the kubelet mount on.
	var base []entry
	for _, name := range []string{"dev/", "etc/", "proc/", "sys/", "tmp/", "run/", "var/"} {
		base = append(base, entry{name: name})
	}
	work := append(base[:len(base):len(base)], entry{name: "bin/"}, entry{name: "bin/guest", data: guest}, entry{name: "bin/busybox", data: shell})
	for _, a := range applets {
		work = append(work, entry{name: "bin/" + a, to: "busybox"})
	}
	for _, image := range []struct {
		file, name string
		entrypoint []string
		entries    []entry
	}{
		{"pause.tar", pauseImage, []string{"/pause"}, append(base[:len(base):len(base)], entry{name: "pause", data: guest})},
		{"work.tar", WorkImage, []string{"/bin/guest", "work"}, work},
	} {
		data, err := archive(image.name, image.entrypoint, image.entries)
		if err != nil {
			return err
		}
		if err := os.WriteFile(root+dir+"/"+image.file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
