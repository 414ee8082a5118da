// Command release holds the version of a release in one piece: the file VERSION, the charts, the kustomizations, the changelog and the images.
//
//	go run ./tools/release check           they agree, and the changelog has notes for the version (make release-check)
//	go run ./tools/release check cut       the same of what gets a tag: the notes are a release with its day
//	go run ./tools/release notes           print the release notes of the version
//	go run ./tools/release set 0.2.0       write a new version everywhere
//	go run ./tools/release cut 2026-12-01  what is unreleased in the changelog becomes the release of that day
package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if err := run(".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root string, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check", len(args) == 2 && args[0] == "check" && args[1] == "cut":
		v, err := version(root)
		if err != nil {
			return err
		}
		title, _, notesErr := notes(root, v)
		if notesErr == nil && len(args) == 2 && title == unreleased {
			notesErr = fmt.Errorf("CHANGELOG.md: the notes of %s are not cut; to fix: go run ./tools/release cut DATE", v)
		}
		if err := errors.Join(agree(root, v), notesErr, archives(root, v)); err != nil {
			return err
		}
		fmt.Printf("%s: binaries, charts, kustomizations, images and changelog (%s) agree\n", v, title)
		return nil
	case len(args) == 1 && args[0] == "notes":
		v, err := version(root)
		if err != nil {
			return err
		}
		_, text, err := notes(root, v)
		fmt.Println(text)
		return err
	case len(args) == 2 && args[0] == "set":
		return set(root, args[1])
	case len(args) == 2 && args[0] == "cut":
		return cut(root, args[1])
	}
	return errors.New("want check [cut], notes, set VERSION or cut DATE")
}

// semver is a version as Helm and Go modules take it; a pre-release may follow.
var semver = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func version(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return "", err
	}
	v := strings.TrimSpace(string(text))
	if !semver.MatchString(v) {
		return "", fmt.Errorf("VERSION holds %q: want MAJOR.MINOR.PATCH", v)
	}
	return v, nil
}

// places are where the version stands: files by pattern, and the lines that hold it.
var places = []struct {
	files string
	line  *regexp.Regexp
}{
	{"deploy/chart/*/Chart.yaml", regexp.MustCompile(`(?m)^((?:version|appVersion): ).*$`)},
	{"deploy/*/kustomization.yaml", regexp.MustCompile(`(?m)^( +newTag: ).*$`)},
	{"deploy/*/*/kustomization.yaml", regexp.MustCompile(`(?m)^( +newTag: ).*$`)},
	{"deploy/chart/springtide/files/*.yaml", regexp.MustCompile(`(?m)^(.*image: springtide\.dev/springtide[a-z-]*:).*$`)},
	{"Dockerfile", regexp.MustCompile(`(springtide\.dev/springtide[a-z-]*:)[^ ]+`)},
}

// each calls f with every line that holds the version, and writes what f makes of the file when it changed.
func each(root string, f func(file, head, line string) string) error {
	for _, p := range places {
		files, err := filepath.Glob(filepath.Join(root, p.files))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			made := p.line.ReplaceAllStringFunc(string(text), func(line string) string {
				return f(file, p.line.FindStringSubmatch(line)[1], line)
			})
			if made != string(text) {
				if err := os.WriteFile(file, []byte(made), 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// agree finds lines with another version.
func agree(root, v string) error {
	var wrong []error
	found := 0
	err := each(root, func(file, head, line string) string {
		found++
		if line != head+v {
			wrong = append(wrong, fmt.Errorf("%s: %q, VERSION holds %s; to fix: go run ./tools/release set %s", file, strings.TrimSpace(line), v, v))
		}
		return line
	})
	if err == nil && found < 4 {
		err = fmt.Errorf("only %d lines with a version were found", found)
	}
	return errors.Join(append(wrong, err)...)
}

func set(root, v string) error {
	if !semver.MatchString(v) {
		return fmt.Errorf("%q: want MAJOR.MINOR.PATCH", v)
	}
	if err := os.WriteFile(filepath.Join(root, "VERSION"), []byte(v+"\n"), 0o644); err != nil {
		return err
	}
	return each(root, func(_, head, _ string) string { return head + v })
}

// heading is a release's line in the changelog.
func heading(v string) string { return "## " + v + " - " }

// unreleased is the title of what has no release yet.
const unreleased = "Unreleased"

// notes finds the release notes of a version: its own section, or, before that is cut, what is unreleased. A version that is cut already must not be
// built again from more than its section says.
func notes(root, v string) (title, text string, err error) {
	all, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", "", err
	}
	for section := range strings.SplitSeq("\n"+string(all), "\n## ") {
		head, body, _ := strings.Cut(section, "\n")
		has := strings.Contains(body, "\n- ")
		switch {
		case head == unreleased && has:
			title, text = head, strings.TrimSpace(body)
		case strings.HasPrefix("## "+head, heading(v)):
			if title != "" {
				return "", "", fmt.Errorf("CHANGELOG.md has entries after release %s; to fix: go run ./tools/release set NEXT", v)
			}
			if !has {
				return "", "", fmt.Errorf("CHANGELOG.md: release %s has no entry", v)
			}
			return head, strings.TrimSpace(body), nil
		}
	}
	if title == "" {
		return "", "", fmt.Errorf("CHANGELOG.md has no notes for %s: neither a section %q nor entries under %s", v, heading(v)+"DATE", unreleased)
	}
	return title, text, nil
}

// cut gives what is unreleased the version and a date.
func cut(root, date string) error {
	v, err := version(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "CHANGELOG.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const open = "\n## Unreleased\n"
	if !strings.Contains(string(text), open) || strings.Contains(string(text), "\n"+heading(v)) {
		return fmt.Errorf("CHANGELOG.md has no section Unreleased, or %s already", v)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), open, open+"\n"+heading(v)+date+"\n", 1)), 0o644)
}

// archives makes sure that what `make images` built, where it was built, is of this version.
func archives(root, v string) error {
	files, err := filepath.Glob(filepath.Join(root, "bin", "images", "*.tar"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("bin/images is empty; to fix: make images")
	}
	var wrong []error
	for _, f := range files {
		name, err := imported(f)
		if want := "springtide.dev/" + strings.TrimSuffix(filepath.Base(f), ".tar") + ":" + v; err != nil || name != want {
			wrong = append(wrong, fmt.Errorf("%s is imported as %q, want %q (%w); to fix: make images", f, name, want, err))
		}
	}
	return errors.Join(wrong...)
}

// imported is the name that an OCI archive is imported under.
func imported(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return "", errors.New("no index.json")
		}
		if err != nil {
			return "", err
		}
		if h.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"manifests"`
		}
		if err := json.NewDecoder(r).Decode(&index); err != nil {
			return "", err
		}
		if len(index.Manifests) != 1 {
			return "", fmt.Errorf("%d images in one archive", len(index.Manifests))
		}
		return index.Manifests[0].Annotations["io.containerd.image.name"], nil
	}
}
