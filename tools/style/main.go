// Command style checks what readers of the project read against its rules of style: no word that the field has a better one for, and no
// sentence of more than 30 words in what operators read. It runs at the root of the checkout, and names file, line and what to write.
//
// Texts and sentences are checked in the files of tools/style/held.txt: Markdown pages, and Go files whose texts are
// conditions, events, alerts or output of the command line. A file that was cleaned is added to the list, and none is
// taken off it. Comments and names are checked in every Go file, and descriptions and comments in each manifest,
// dashboard and alert.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const list = "tools/style/held.txt"

// finding is one thing to change.
type finding struct {
	file string
	line int
	text string
}

func main() {
	count := flag.Bool("count", false, "count the findings of each folder")
	flag.Parse()
	found, err := check(".")
	if err != nil {
		log.Fatal(err)
	}
	if *count {
		perFolder := map[string]int{}
		for _, f := range found {
			perFolder[path.Dir(filepath.ToSlash(f.file))]++
		}
		for _, folder := range slices.Sorted(maps.Keys(perFolder)) {
			fmt.Printf("%5d %s\n", perFolder[folder], folder)
		}
		fmt.Printf("%5d in all\n", len(found))
		return
	}
	for _, f := range found {
		fmt.Printf("%s:%d: %s\n", f.file, f.line, f.text)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// held reads the list of files below a folder; patterns stand for files.
func held(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, line))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s: %s is not there (%w)", list, line, err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func check(root string) ([]finding, error) {
	files, err := held(root)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, f := range files {
		var found []finding
		if strings.HasSuffix(f, ".go") {
			found, err = goTexts(f)
		} else {
			found, err = page(f)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	err = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || copies(name)) {
				return fs.SkipDir
			}
			return nil
		}
		var found []finding
		switch path.Ext(name) {
		case ".go":
			found, err = comments(at, name)
		case ".yaml", ".json":
			if strings.HasPrefix(name, "deploy/") || strings.HasPrefix(name, "dashboards/") {
				found, err = document(at)
			}
		}
		out = append(out, found...)
		return err
	})
	return out, err
}

// copies says whether a folder is the charts': their manifests are generated from others, and their templates are no YAML.
func copies(folder string) bool {
	return strings.HasPrefix(folder, "deploy/chart/") && (path.Base(folder) == "files" || path.Base(folder) == "templates")
}
