package charttest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// judgePage runs in the browser: it lists what a reader would not see. A label of a chart beyond its chart, a plot without a line, and a page wider
// than its window.
const judgePage = `<script>
const bad = [];
if (document.documentElement.scrollWidth > window.innerWidth) bad.push("the page is " + document.documentElement.scrollWidth + " wide, the window " + window.innerWidth);
document.querySelectorAll("svg").forEach((svg, i) => {
  const box = svg.getBoundingClientRect();
  svg.querySelectorAll("text").forEach(t => {
    const r = t.getBoundingClientRect();
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) bad.push("chart " + i + " cuts off " + t.textContent);
  });
  const drawn = [...svg.querySelectorAll("path")].filter(p => p.getTotalLength && p.getTotalLength() > 0 && p.getAttribute("stroke") !== "#e4e4e4");
  if (drawn.length < 2) bad.push("chart " + i + " is empty");
  svg.querySelectorAll("path.breach").forEach(p => {
    const r = p.getBBox();
    if (!(p.getTotalLength() > 1) || r.x < 0 || r.x + r.width > svg.viewBox.baseVal.width + 1) bad.push("chart " + i + " has a mark of a breach that cannot be seen");
  });
});
if (!document.querySelector("path.breach")) bad.push("no breach is marked");
document.body.setAttribute("data-verdict", bad.length ? bad.join("; ") : "fine");
</script>`

var browserVerdict = regexp.MustCompile(`data-verdict="([^"]*)"`)

// InABrowser opens a page in headless Chromium, and fails where a reader would not see all of it. With -artifacts the screenshot is kept:
// go test -artifacts -outputdir DIR.
func InABrowser(t *testing.T, name string, write func(*bytes.Buffer) error) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: hack/debian-deps.sh browser installs it")
	}
	if testing.Short() {
		t.Skip("starts a browser; run without -short")
	}
	var page bytes.Buffer
	if err := write(&page); err != nil {
		t.Fatal(err)
	}
	Within(t, page.String())
	path := filepath.Join(t.TempDir(), name+".html")
	if err := os.WriteFile(path, bytes.Replace(page.Bytes(), []byte("</body>"), []byte(judgePage+"</body>"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	shot := filepath.Join(t.ArtifactDir(), name+".png")
	dom := browse(t, chromium, "--dump-dom", "file://"+path)
	if m := browserVerdict.FindSubmatch(dom); m == nil || string(m[1]) != "fine" {
		t.Errorf("%s in the browser: %s", name, m)
	}
	browse(t, chromium, "--screenshot="+shot, "file://"+path)
	if st, err := os.Stat(shot); err != nil || st.Size() < 10_000 {
		t.Errorf("no screenshot at %s: %v", shot, err)
	}
	t.Logf("%s: %s", name, shot)
}

func browse(t *testing.T, chromium string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The pages are the test's own, so that they need no sandbox, which needs rights that a container lacks.
	cmd := exec.CommandContext(ctx, chromium, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,5200",
		"--user-data-dir=" + t.TempDir()}, args...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return out.Bytes()
}
