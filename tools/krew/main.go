// Command krew writes the manifest by which kubectl's plugin manager installs the command line as `kubectl springtide`. It takes the version,
// the address below which the archives are served, and the archives themselves: springtide-OS-ARCH.tar.gz, each with kubectl-springtide in it.
//
//	go run ./tools/krew v0.1.0 https://releases.example/springtide springtide-linux-amd64.tar.gz ... > springtide.yaml
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: krew VERSION URL ARCHIVE...")
	}
	if err := manifest(os.Stdout, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

var (
	archiveName = regexp.MustCompile(`^springtide-(linux|darwin)-(amd64|arm64)\.tar\.gz$`)
	versionName = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
)

func manifest(out io.Writer, version, base string, archives []string) error {
	if !versionName.MatchString(version) {
		return fmt.Errorf("version %q: write one such as v0.1.0", version)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: springtide
spec:
  version: %s
  shortDescription: Lists, explains and steers elastic capacity
  description: |
    The command line of Springtide, an elastic capacity orchestrator for Kubernetes. It lists services, pools, quotas, jobs, loans and
    machines, explains decisions, and recalls machines.
  platforms:
`, version)
	for _, path := range archives {
		name := filepath.Base(path)
		m := archiveName.FindStringSubmatch(name)
		if m == nil {
			return fmt.Errorf("archive %s: name it springtide-OS-ARCH.tar.gz", name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, `    - selector:
        matchLabels: {os: %s, arch: %s}
      uri: %s/%s/%s
      sha256: %x
      bin: kubectl-springtide
`, m[1], m[2], strings.TrimSuffix(base, "/"), version, name, sha256.Sum256(text))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
