// guest is the lab's program in a node's virtual machine: the end of the harness there, and what the pods of stories run.
//
//	guest serve          the harness' end: runs scripts, moves files, reads and sets the clock, forwards a service address
//	guest pause          the first process of every pod
//	guest work [flags]   a workload; see its flags
//	guest api PATH       asks the API server as the pod's service account; prints the answer
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name == "guest" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "serve":
		err = serve()
	case "pause":
		<-asked()
	case "work":
		err = work(args)
	case "api":
		err = askAPI(args)
	default:
		err = fmt.Errorf("unknown command %q: want serve, pause, work or api", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// asked receives when the process is asked to end.
func asked() <-chan os.Signal {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	return end
}
