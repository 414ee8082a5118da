package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/springtide/springtide/agent/shape"
)

const (
	factsFile   = "facts.json"
	journalFile = "journal.jsonl"
	// journalBytes is the size at which the journal is turned over; one older file is kept.
	journalBytes = 8 << 20
)

// SaveFacts keeps the facts on disk, so that a restart without an API server enforces the last share. An error is the caller's to report: a
// checkpoint that silently was not written is worse than none.
func SaveFacts(dir string, f *Facts) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("keep the last share: %w", err)
	}
	if err := replace(filepath.Join(dir, factsFile), data); err != nil {
		return fmt.Errorf("keep the last share: %w", err)
	}
	return nil
}

// replace writes a file as a whole, so that a crash leaves the old one or the new one.
func replace(path string, data []byte) error {
	fresh := path + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// LoadFacts reads what was kept of a node; nil where there is nothing. A directory may come from another machine, with the image of its disk.
func LoadFacts(dir, node string) (*Facts, error) {
	data, err := os.ReadFile(filepath.Join(dir, factsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last share: %w", err)
	}
	var f Facts
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read the last share: %w", err)
	}
	if f.Node.Name != node {
		return nil, fmt.Errorf("read the last share: %s is of node %q, and this is node %q: nothing of it is enforced until the API server answers", filepath.Join(dir, factsFile), f.Node.Name, node)
	}
	return &f, nil
}

// Entry is one line of the journal: a change, how it was made, and what came of it. The entries of a journal without an error, in their order,
// lead a tree to the state that the agent left it in.
type Entry struct {
	// At is when the write had ended.
	At time.Time `json:"at"`
	shape.Write
	// Via is file or nri.
	Via   string `json:"via"`
	Error string `json:"error,omitempty"`
}

// journal appends to a file of one JSON object a line.
type journal struct {
	path string
	size int64
	file *os.File
	// torn: the last line was not written whole. The next entry begins a line of its own, so that it is not lost with it.
	torn bool
}

func openJournal(dir string) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalFile)}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 { // a crash may have cut the last line
		last := make([]byte, 1)
		_, err = f.ReadAt(last, info.Size()-1)
		j.torn = last[0] != '\n'
	}
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", errors.Join(err, f.Close()))
	}
	j.file, j.size = f, info.Size()
	return j, nil
}

func (j *journal) append(entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var lines []byte
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if j.size > journalBytes {
		if err := errors.Join(j.file.Close(), os.Rename(j.path, j.path+".1")); err != nil {
			return fmt.Errorf("turn the journal over: %w", err)
		}
		f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("turn the journal over: %w", err)
		}
		j.file, j.size, j.torn = f, 0, false
	}
	if j.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := j.file.Write(lines)
	j.size += int64(n)
	if n > 0 {
		j.torn = lines[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }
