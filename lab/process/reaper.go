package process

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// reaperScript keeps a list of process groups and kills them when its input ends.
const reaperScript = `groups=" "
while read -r what group; do
	case $what in
	+) groups="$groups$group " ;;
	-) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
exit 0`

// reaper is a process that ends what is left of the pods when the lab is gone, however that came: its input is a pipe from the lab, and the
// kernel closes that when the lab dies. A parent-death signal would reach the pods' first processes alone, not those that they started.
type reaper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	mu  sync.Mutex
}

func startReaper() (*reaper, error) {
	r := &reaper{cmd: exec.Command("/bin/sh", "-c", reaperScript)}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is not for it
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return r, nil
}

// watch has a process group killed with the lab; forget takes it back, before the kernel may give its number away.
func (r *reaper) watch(group int) error { return r.send("+", group) }

func (r *reaper) forget(group int) error { return r.send("-", group) }

func (r *reaper) send(what string, group int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := fmt.Fprintf(r.in, "%s %d\n", what, group); err != nil {
		return fmt.Errorf("write to the reaper: %w", err)
	}
	return nil
}

// close ends the reaper, and with it all groups that it still watches.
func (r *reaper) close() error {
	r.mu.Lock()
	err := r.in.Close()
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stop the reaper: %w", err)
	}
	return r.cmd.Wait()
}
