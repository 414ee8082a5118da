package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// openInput opens the file, or copies standard input to a temporary one, since the input is read twice.
func openInput(path string, stdin io.Reader) (name string, f *os.File, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return path, nil, usageError{fmt.Errorf("--in: %w", err)}
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

// writeOutput hands write a destination. A regular file is replaced only when all of it was written.
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return usageError{fmt.Errorf("--out: %w", err)}
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usageError{fmt.Errorf("--out: %w", err)}
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		if bad := (usageError{}); errors.As(err, &bad) {
			return err // what was to be written could not be made
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// writeReport writes a report as a page and as JSON to the files that were asked for, and as tables to stdout where neither of the two is there.
func writeReport(stdout io.Writer, html, out string, report any, page, tables func(io.Writer) error) error {
	if html != "" {
		if err := writeOutput(html, stdout, page); err != nil {
			return err
		}
	}
	if out != "" {
		if err := writeOutput(out, stdout, func(w io.Writer) error { return encode(w, "json", report) }); err != nil {
			return err
		}
	}
	if out == "-" || html == "-" {
		return nil
	}
	return tables(stdout)
}
