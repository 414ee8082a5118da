package notice

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Volume is the name of the volume (an emptyDir) by which a pod takes part: the file notice appears in it, and processes leave their answers in
// the files ack, heartbeat and checkpoint, each with the text that the annotation of that name takes.
const Volume = "springtide-answers"

// Files of the volume.
const (
	FileNotice     = "notice"
	FileAck        = "ack"
	FileHeartbeat  = "heartbeat"
	FileCheckpoint = "checkpoint"
	// FileLatency is what a pod of online measures of itself: its latency and the limit of it in seconds, as in "0.18 0.25". It is no answer, and stays on
	// the machine.
	FileLatency = "latency"
)

// longest is the longest answer: an epoch or a time, with room.
const longest = 128

// Dir is where the kubelet keeps the volume of a pod.
func Dir(kubelet, podUID string) string {
	return filepath.Join(kubelet, "pods", podUID, "volumes", "kubernetes.io~empty-dir", Volume)
}

// Box is the directory of one pod's volume.
type Box struct{ dir string }

// Open names a directory; whether it is there shows with the first use.
func Open(dir string) Box { return Box{dir} }

// Show makes the file notice say a text; an empty one removes the file. It reports whether something changed. The file is replaced as a whole, so
// that no process reads half of it.
func (b Box) Show(text string) (bool, error) {
	changed, err := b.show(text)
	if err != nil {
		return false, fmt.Errorf("show the notice: %w", err)
	}
	return changed, nil
}

func (b Box) show(text string) (bool, error) {
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	has, err := read(root, FileNotice, len(text)+1)
	switch {
	case err == nil && bytes.Equal(has, []byte(text)) && text != "":
		return false, nil
	case text == "":
		if err = root.Remove(FileNotice); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	fresh := "." + FileNotice + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// O_EXCL follows no link that the pod puts there in between.
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(text)
	// The agent's umask must not keep the pod's user from reading.
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return false, err
	}
	return true, root.Rename(fresh, FileNotice)
}

// ReplaceFile replaces a file of a directory that the writer owns, as a whole, so that no reader sees half of it.
func ReplaceFile(path, text string) error {
	fresh := path + ".new"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// read reads at most a number of bytes of a regular file.
func read(root *os.Root, name string, most int) ([]byte, error) {
	// O_NONBLOCK: a pipe without a writer would hold the agent up.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	out := make([]byte, most)
	n, err := f.ReadAt(out, 0)
	if n > 0 || err == nil {
		return out[:n], nil
	}
	if info.Size() == 0 {
		return nil, nil
	}
	return nil, err
}

// Said is what a file said, and since when: the same epoch written again answers the notice of another loan.
type Said struct {
	Text string
	At   time.Time
}

// Read reads an answer. A file that is not there, that is no regular file or that is longer than a line says nothing.
func (b Box) Read(file string) Said {
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return Said{}
	}
	defer root.Close()
	info, err := root.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return Said{}
	}
	data, err := read(root, file, longest+1)
	if err != nil || len(data) > longest {
		return Said{}
	}
	return Said{strings.TrimSpace(string(data)), info.ModTime()}
}

// Relay remembers what was carried on of a pod's answers.
type Relay struct{ was map[string]Said }

// Carry hands what is new in the files to write. The next call hands over again what write did not take.
func (r *Relay) Carry(b Box, files []string, write func(file, text string) error) error {
	if r.was == nil {
		r.was = map[string]Said{}
	}
	var errs []error
	for _, file := range files {
		now := b.Read(file)
		if now.Text == "" || now == r.was[file] {
			continue
		}
		if err := write(file, now.Text); err != nil {
			errs = append(errs, fmt.Errorf("carry the file %s: %w", file, err))
			continue
		}
		r.was[file] = now
	}
	return errors.Join(errs...)
}
