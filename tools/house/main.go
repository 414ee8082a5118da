// Command house measures the code of a checkout: methods on the largest structs, arrows between the files of each
// room, conditions a function, comments, sizes, who owns the twelve decisions, and words that the rules of style
// replace. It fails when an owner is no function any more.
//
//	go run ./tools/house                      # tables of this checkout
//	go run ./tools/house -dir ../other        # tables of another one
//	go run ./tools/house -before COMMIT       # the page docs/benchmarks/house.md: a commit, and this checkout
//
// Tests and generated files are left out. It parses and compiles nothing.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "the checkout to measure")
	before := flag.String("before", "", "print a page that compares a commit of the checkout with it")
	flag.Parse()
	log.SetFlags(0)
	if err := run(os.Stdout, *dir, *before); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, dir, before string) error {
	h, err := load(dir)
	if err != nil {
		return err
	}
	missing := h.missing(now)
	if before == "" {
		h.figures().print(w)
		return errors.Join(missing...)
	}
	old, commit, err := loadCommit(dir, before)
	if err != nil {
		return err
	}
	here, err := git(dir, "describe", "--always", "--dirty", "--abbrev=8")
	if err != nil {
		return err
	}
	comparison{before: old.figures(), now: h.figures(), commitBefore: commit, commitNow: here}.print(w)
	return errors.Join(append(missing, old.missing(then)...)...)
}

// loadCommit reads a commit of a checkout, and its short name.
func loadCommit(dir, commit string) (*house, string, error) {
	name, err := git(dir, "rev-parse", "--short=8", commit)
	if err != nil {
		return nil, "", err
	}
	tmp, err := os.MkdirTemp("", "house")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.Command("git", "-C", dir, "archive", "--format=tar", name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, "", fmt.Errorf("git archive %s: %w: %s", name, err, stderr.String())
	}
	if err := unpack(bytes.NewReader(out), tmp); err != nil {
		return nil, "", err
	}
	h, err := load(tmp)
	return h, name, err
}

// unpack writes the Go files of an archive, and its go.mod.
func unpack(r io.Reader, dir string) error {
	for t := tar.NewReader(r); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		wanted := strings.HasSuffix(head.Name, ".go") || head.Name == "go.mod"
		if !wanted || !filepath.IsLocal(head.Name) || head.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(dir, head.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
}

func git(dir string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
