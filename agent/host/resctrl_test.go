package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResctrl plays a class on a made-up tree: limits are rounded as the hardware wants them, threads are moved once, and a missing view of processes
// is said.
func TestResctrl(t *testing.T) {
	b := newBench(t)
	c, err := OpenCgroups(b.roots.Cgroup, "")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	r := resctrl{root}
	if _, err := r.confine(c, nil, 20, 30); err == nil {
		t.Error("a machine without resctrl is limited")
	}
	files(t, root, map[string]string{"schemata": "    MB:0=100;1=100\n    L3:0=fffff;1=fffff", "info/L3/min_cbm_bits": "2", "info/MB/bandwidth_gran": "10", "info/MB/min_bandwidth": "10",
		resctrlClass + "/schemata": "", resctrlClass + "/tasks": ""})
	b.group("kubepods/besteffort/podx")
	files(t, b.roots.Cgroup, map[string]string{"kubepods/besteffort/podx/cgroup.threads": "11\n12"})
	moved, err := r.confine(c, []string{"kubepods/besteffort/podx"}, 20, 35)
	if err != nil || moved != 2 {
		t.Fatalf("%d threads, %v", moved, err)
	}
	if got := r.text(resctrlClass + "/schemata"); got != "L3:0=f;1=f\nMB:0=30;1=30" {
		t.Errorf("the class says %q", got)
	}
	if got := strings.Fields(r.text(resctrlClass + "/tasks")); len(got) != 2 {
		t.Errorf("the class has %v", got)
	}
	if moved, err = r.confine(c, []string{"kubepods/besteffort/podx"}, 20, 35); moved != 0 || err != nil {
		t.Errorf("a second run moves %d, %v", moved, err)
	}
	files(t, b.roots.Cgroup, map[string]string{"kubepods/besteffort/podx/cgroup.threads": "0"})
	if _, err = r.confine(c, []string{"kubepods/besteffort/podx"}, 20, 35); err == nil || !strings.Contains(err.Error(), "hostPID") {
		t.Errorf("threads that cannot be seen: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "schemata"), []byte("L3:0=zz"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.confine(c, nil, 20, 0); err == nil {
		t.Error("a mask that is none is accepted")
	}
}
