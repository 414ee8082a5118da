// Command images builds the project's container images without a container engine: static binaries on an empty base with CA certificates and
// zone data, one OCI archive an image for amd64 and arm64, the same bytes from each build of a commit.
//
//	go run ./tools/images --out bin/images          every image, as an archive
//	go run ./tools/images --root DIR --arch amd64   the files of every image, in DIR/NAME, for the Dockerfile
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	out := flag.String("out", filepath.Join("bin", "images"), "folder for the archives")
	root := flag.String("root", "", "write the files of each image below this folder, and no archive")
	arch := flag.String("arch", strings.Join(platforms, ","), "architectures, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *out, *root, strings.Split(*arch, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, root string, arches, names []string) error {
	wanted := images
	if len(names) > 0 {
		wanted = nil
		for _, name := range names {
			i := slices.IndexFunc(images, func(i image) bool { return i.Name == name })
			if i < 0 {
				return fmt.Errorf("no image %s: see tools/images/table.go", name)
			}
			wanted = append(wanted, images[i])
		}
	}
	goroot, err := command(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	base, err := baseFiles(goroot)
	if err != nil {
		return err
	}
	rel, err := thisRelease(ctx)
	if err != nil {
		return err
	}
	if root != "" {
		if len(arches) != 1 {
			return errors.New("--root takes one --arch")
		}
		for _, i := range wanted {
			binary, err := build(ctx, root+".bin", i, rel, arches[0])
			if err != nil {
				return err
			}
			if err := layOut(filepath.Join(root, i.Name), slices.Concat(base, ownFiles(i, binary))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, i := range wanted {
		own := map[string][]entry{}
		for _, arch := range arches {
			binary, err := build(ctx, out, i, rel, arch)
			if err != nil {
				return err
			}
			own[arch] = ownFiles(i, binary)
		}
		if err := writeArchive(filepath.Join(out, i.Name+".tar"), i, rel, arches, base, own); err != nil {
			return err
		}
	}
	return nil
}

// writeArchive packs an image into a file and prints its size.
func writeArchive(path string, i image, r release, arches []string, base []entry, own map[string][]entry) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(pack(f, i, r, arches, base, own), f.Close()); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s/%s:%s  %s  %.1f MiB for %s\n", registry, i.Name, r.Version, path, float64(info.Size())/(1<<20), strings.Join(arches, ", "))
	return nil
}

// build compiles the binary of an image. It is static, and holds neither paths nor a build id of the machine.
func build(ctx context.Context, dir string, i image, r release, arch string) (string, error) {
	path := filepath.Join(dir, i.Name+"-"+arch)
	_, err := command(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS="}, "go", "build", "-p", "2", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+r.Version+" -X main.revision="+r.Revision, "-o", path, i.Package)
	return path, err
}

// thisRelease is what is built: the version of the file VERSION, the commit, and the commit's time. SOURCE_DATE_EPOCH and REVISION stand in where
// there is no git, as in the Dockerfile.
func thisRelease(ctx context.Context) (release, error) {
	text, err := os.ReadFile("VERSION")
	if err != nil {
		return release{}, fmt.Errorf("%w: run this at the root of the checkout", err)
	}
	r := release{Version: strings.TrimSpace(string(text)), Revision: os.Getenv("REVISION"), Created: time.Unix(0, 0).UTC()}
	stamp := os.Getenv("SOURCE_DATE_EPOCH")
	if git, err := command(ctx, nil, "git", "log", "-1", "--format=%H %ct"); err == nil {
		hash, at, _ := strings.Cut(git, " ")
		if r.Revision == "" {
			r.Revision = hash
		}
		if stamp == "" {
			stamp = at
		}
	}
	if stamp != "" {
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			return release{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", stamp)
		}
		r.Created = time.Unix(seconds, 0).UTC()
	}
	return r, nil
}

// command runs a program and returns what it prints.
func command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	b, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(b)), nil
}
