package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/springtide/springtide/internal/validate/offline"
)

// ReadInputs reads every file that is named, and every YAML or JSON file below a directory that is.
func ReadInputs(paths []string, stdin io.Reader) ([]offline.Input, error) {
	var out []offline.Input
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
			out = append(out, offline.Input{Name: "-", Text: text})
			continue
		}
		files, err := filesBelow(path)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			out = append(out, offline.Input{Name: f, Text: text, Found: f != path})
		}
	}
	return out, nil
}

func filesBelow(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(p))) {
			out = append(out, p)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no .yaml, .yml or .json file below it", path)
	}
	return out, err
}
