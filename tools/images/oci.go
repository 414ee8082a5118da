package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// The media types of the OCI image specification, version 1.1.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// platform says on what machine an image runs.
type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// descriptor names a blob by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest lists the parts of an image of one platform.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// index lists images, one a platform.
type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// imageConfig is how an image is run.
type imageConfig struct {
	Created time.Time `json:"created"`
	platform
	Config  runConfig `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []history `json:"history"`
}

type runConfig struct {
	User       string            `json:"User"`
	Env        []string          `json:"Env"`
	Entrypoint []string          `json:"Entrypoint"`
	WorkingDir string            `json:"WorkingDir"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// release is what all images of one build share.
type release struct {
	Version, Revision string
	// Created is the time of the commit: the time of the build would make each build another image.
	Created time.Time
}

// archive collects the blobs of an OCI image layout.
type archive struct {
	blobs map[string][]byte
	order []string
}

// add keeps a blob and returns its descriptor.
func (a *archive) add(mediaType string, blob []byte) descriptor {
	sum := digest(blob)
	if _, ok := a.blobs[sum]; !ok {
		a.blobs[sum] = blob
		a.order = append(a.order, sum)
	}
	return descriptor{MediaType: mediaType, Digest: sum, Size: int64(len(blob))}
}

func (a *archive) addJSON(mediaType string, v any) (descriptor, error) {
	b, err := json.Marshal(v)
	return a.add(mediaType, b), err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// runConfigOf is how the image is run: as an account without rights, with nothing but its binary.
func runConfigOf(i image, r release) runConfig {
	dir := i.Folder
	if dir == "" {
		dir = "/"
	}
	return runConfig{
		User: fmt.Sprintf("%d:%d", account, account), Env: []string{"PATH=/", "ZONEINFO=" + zonePath}, Entrypoint: []string{"/" + i.Name}, WorkingDir: dir,
		Labels: map[string]string{
			"org.opencontainers.image.title": i.Title, "org.opencontainers.image.description": i.Description, "org.opencontainers.image.source": source,
			"org.opencontainers.image.licenses": license, "org.opencontainers.image.version": r.Version, "org.opencontainers.image.revision": r.Revision,
		},
	}
}

// addImage packs one image of one platform: a layer that all images share, and a layer with the binary.
func (a *archive) addImage(i image, r release, arch string, base, own []entry) (descriptor, error) {
	c := imageConfig{Created: r.Created, platform: platform{arch, "linux"}, Config: runConfigOf(i, r), RootFS: rootFS{Type: "layers"}}
	m := manifest{SchemaVersion: 2, MediaType: manifestType}
	for _, l := range []struct {
		by      string
		entries []entry
	}{{"CA certificates and zone data", base}, {i.Package, own}} {
		packed, diff, err := layer(l.entries, r.Created)
		if err != nil {
			return descriptor{}, err
		}
		m.Layers = append(m.Layers, a.add(layerType, packed))
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, diff)
		c.History = append(c.History, history{r.Created, l.by})
	}
	var err error
	if m.Config, err = a.addJSON(configType, c); err != nil {
		return descriptor{}, err
	}
	d, err := a.addJSON(manifestType, m)
	d.Platform = &c.platform
	return d, err
}

// layer is a gzipped tar of entries, and the digest of the tar. Nothing in it depends on the machine: owners are numbers, and each time is that
// of the commit.
func layer(entries []entry, at time.Time) (packed []byte, diff string, err error) {
	var out bytes.Buffer
	sum := sha256.New()
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	w := tar.NewWriter(io.MultiWriter(z, sum))
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(e.Path, "/"), Mode: unixMode(e), Uid: e.Owner, Gid: e.Owner, ModTime: at, Format: tar.FormatPAX}
		if e.Dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		} else if h.Size, err = e.size(); err != nil {
			return nil, "", err
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, "", err
		}
		if !e.Dir {
			if err := e.writeTo(w); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// unixMode is the mode as tar has it: the sticky bit of /tmp is elsewhere in Go's.
func unixMode(e entry) int64 {
	m := int64(e.Mode.Perm())
	if e.Mode&^e.Mode.Perm() != 0 {
		m |= 0o1000
	}
	return m
}

// pack writes the archive of an image with all its platforms, as `docker load`, `ctr images import`, podman and skopeo read it. base and own
// give the layers by platform.
func pack(w io.Writer, i image, r release, platforms []string, base []entry, own map[string][]entry) error {
	a := &archive{blobs: map[string][]byte{}}
	all := index{SchemaVersion: 2, MediaType: indexType}
	for _, arch := range platforms {
		d, err := a.addImage(i, r, arch, base, own[arch])
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, d)
	}
	top, err := a.addJSON(indexType, all)
	if err != nil {
		return err
	}
	top.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.Version,
		"io.containerd.image.name":          registry + "/" + i.Name + ":" + r.Version,
	}
	entry, err := json.Marshal(index{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{top}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	file := func(name string, b []byte) error {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: r.Created, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := t.Write(b)
		return err
	}
	if err := file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := file("index.json", entry); err != nil {
		return err
	}
	for _, sum := range a.order {
		if err := file("blobs/"+strings.Replace(sum, ":", "/", 1), a.blobs[sum]); err != nil {
			return err
		}
	}
	return t.Close()
}
