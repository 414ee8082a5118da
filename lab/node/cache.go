package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// The cache keeps a few versions of each thing: checkouts with different programs or files share it, and must not make each other build again.
const (
	keptVersions = 4
	keptBytes    = 3 << 30
)

// found says whether the file of a version is there, and marks the version as used now.
func found(file string) bool {
	if _, err := os.Stat(file); err != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(file), now, now) // a version without the mark is only removed earlier
	return true
}

// prune removes the versions in a directory that were not used for longest: all beyond a count, and those beyond a sum of bytes. The last used
// one stays, however large it is.
func prune(dir string, count int, bytes int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	type version struct {
		path string
		used time.Time
	}
	var all []version
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		all = append(all, version{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	slices.SortFunc(all, func(a, b version) int { return b.used.Compare(a.used) })
	var sum int64
	for i, v := range all {
		size, err := onDisk(v.path)
		if err != nil {
			return err
		}
		if sum += size; i > 0 && (i >= count || sum > bytes) {
			if err := os.RemoveAll(v.path); err != nil {
				return fmt.Errorf("remove an old version from the cache: %w", err)
			}
		}
	}
	return nil
}

// onDisk is what the files below a path take; a disk image's holes take nothing.
func onDisk(path string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.New("this system does not say what a file takes on its disk")
		}
		sum += stat.Blocks * 512
		return nil
	})
	return sum, err
}
