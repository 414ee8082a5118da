// Package files reads what -f and --in name, and replaces what --out and --html name only when all of it was written.
package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// Open opens the file, or copies standard input to a temporary one, since the input is read twice.
func Open(path string, stdin io.Reader) (name string, f *os.File, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return path, nil, usage.Error{Err: fmt.Errorf("--in: %w", err)}
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return path, f, nil
		}
		defer f.Close()
		f2, err := spool(f)
		return path, f2, err
	}
	f, err = spool(stdin)
	return "stdin", f, err
}

// spool copies a stream to a file that vanishes when it is closed.
func spool(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "springtide-forecast-*.csv")
	if err != nil {
		return nil, fmt.Errorf("keep the input: %w", err)
	}
	_ = os.Remove(f.Name())
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("keep the input: %w", err)
	}
	return f, nil
}

// Write hands write the destination that a flag names. A regular file is replaced only when all of it was written.
func Write(flag, path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return usage.Error{Err: fmt.Errorf("%s: %w", flag, err)}
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usage.Error{Err: fmt.Errorf("%s: %w", flag, err)}
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		if bad := (usage.Error{}); errors.As(err, &bad) {
			return err // what was to be written could not be made
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Check refuses a file that could not be written, before what it shall hold is computed for long. It leaves no trace: a
// file that is there stays as it is until Write replaces it.
func Check(flag, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	const fix = "write a file in a directory that is there and can be written"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return usage.Error{Err: fmt.Errorf("%s: %s is a directory: %s", flag, path, fix)}
		}
		return nil // a device, or a pipe that would hear of its end
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		if bad := (*os.PathError)(nil); errors.As(err, &bad) {
			err = bad.Err // the path is not the user's
		}
		return usage.Error{Err: fmt.Errorf("%s: %s: %w: %s", flag, path, err, fix)}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// WriteReport writes a report as a page and as JSON to the files that were asked for, and as tables to stdout where neither of the two is there.
// A file that cannot be written stops no other.
func WriteReport(stdout io.Writer, html, out string, report any, page, tables func(io.Writer) error) error {
	var wrong []error
	if html != "" {
		wrong = append(wrong, Write("--html", html, stdout, page))
	}
	if out != "" {
		wrong = append(wrong, Write("--out", out, stdout, func(w io.Writer) error { return screen.Encode(w, "json", report) }))
	}
	if out != "-" && html != "-" {
		wrong = append(wrong, tables(stdout))
	}
	return errors.Join(wrong...)
}
