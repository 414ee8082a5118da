package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// entry is a file or folder of an image.
type entry struct {
	// Path is absolute in the image.
	Path string
	// From is the file that holds the bytes; a folder has none. Bytes stands in for a file.
	From  string
	Bytes []byte
	Dir   bool
	Mode  fs.FileMode
	Owner int
}

// size is how many bytes the entry holds.
func (e *entry) size() (int64, error) {
	if e.From == "" {
		return int64(len(e.Bytes)), nil
	}
	i, err := os.Stat(e.From)
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

// writeTo copies the bytes of the entry.
func (e *entry) writeTo(w io.Writer) error {
	if e.From == "" {
		_, err := w.Write(e.Bytes)
		return err
	}
	f, err := os.Open(e.From)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// baseFiles are what each image holds besides its binary: CA certificates, zone data, and names for the two accounts. Both come from pinned
// modules (golang.org/x/crypto and the Go release), not from the machine that builds, so that every machine builds the same bytes.
func baseFiles(goroot string) ([]entry, error) {
	zones, err := os.ReadFile(filepath.Join(goroot, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("the zone data of the Go release: %w", err)
	}
	var certificates [][]byte
	for root := range bundle.Roots() {
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	slices.SortFunc(certificates, bytes.Compare)
	nonroot := fmt.Sprintf("nonroot:x:%d:", account)
	return []entry{
		{Path: "/etc", Dir: true, Mode: 0o755},
		{Path: "/etc/group", Mode: 0o644, Bytes: []byte("root:x:0:\n" + nonroot + "\n")},
		{Path: "/etc/passwd", Mode: 0o644, Bytes: []byte("root:x:0:0:root:/:/nologin\n" + nonroot + fmt.Sprint(account) + ":nonroot:/:/nologin\n")},
		{Path: "/etc/ssl", Dir: true, Mode: 0o755},
		{Path: "/etc/ssl/certs", Dir: true, Mode: 0o755},
		{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Bytes: bytes.Join(certificates, nil)},
		{Path: "/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
		{Path: "/usr", Dir: true, Mode: 0o755},
		{Path: "/usr/share", Dir: true, Mode: 0o755},
		{Path: zonePath, Mode: 0o644, Bytes: zones},
	}, nil
}

// zonePath is where the images keep zone data; the variable ZONEINFO names it.
const zonePath = "/usr/share/zoneinfo.zip"

// ownFiles are the binary and its folder.
func ownFiles(i image, binary string) []entry {
	out := []entry{{Path: "/" + i.Name, From: binary, Mode: 0o755}}
	parent := ""
	for _, part := range strings.Split(strings.Trim(i.Folder, "/"), "/") {
		if part != "" {
			parent += "/" + part
			out = append(out, entry{Path: parent, Dir: true, Mode: 0o755})
		}
	}
	if i.Folder != "" {
		last := &out[len(out)-1]
		last.Mode, last.Owner = 0o700, account
	}
	return out
}

// layOut writes entries below a folder, for an engine that builds the image from it (the Dockerfile). The owner is left to the engine.
func layOut(root string, entries []entry) error {
	for _, e := range entries {
		at := filepath.Join(root, e.Path)
		if e.Dir {
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
		} else {
			var b bytes.Buffer
			if err := e.writeTo(&b); err != nil {
				return err
			}
			if err := os.WriteFile(at, b.Bytes(), 0o644); err != nil {
				return err
			}
		}
		if err := os.Chmod(at, e.Mode); err != nil {
			return err
		}
	}
	return nil
}
