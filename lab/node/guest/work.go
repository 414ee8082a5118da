package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// work touches memory, spins, and prints where the kernel lets it run.
func work(args []string) error {
	f := flag.NewFlagSet("work", flag.ContinueOnError)
	mib := f.Int("mib", 0, "MiB of anonymous memory to map and touch")
	spin := f.Int("spin", 0, "goroutines that do nothing but count")
	again := f.Duration("again", 0, "touch the memory again this often (0: once)")
	deaf := f.Bool("deaf", false, "ignore the request to end")
	grow := f.Int("grow", 0, "MiB of anonymous memory to map and touch each second")
	file := f.Int("file", 0, "MiB of a file to write and to read again with -again")
	interleave := f.Bool("interleave", false, "spread memory over all cells, as a process does that is larger than one")
	probe := f.Bool("probe", false, "print, every ten seconds, how long a small piece of work took")
	answers := f.String("answers", "", "directory of notices: acknowledge the one that is in its file notice")
	if err := f.Parse(args); err != nil {
		return err
	}
	end := asked()
	if *deaf {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	}
	fmt.Println("work: started", where())
	for range *spin {
		go func() {
			for n := 0; ; n++ { //nolint:revive // the work is the counting
			}
		}()
	}
	if *interleave {
		if err := spread(); err != nil {
			return err
		}
	}
	if *mib > 0 {
		data, err := syscall.Mmap(-1, 0, *mib<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return fmt.Errorf("map %d MiB: %w", *mib, err)
		}
		touch(data)
		fmt.Println("work: touched", *mib, "MiB", where())
		if *again > 0 {
			go func() {
				for range time.Tick(*again) {
					touch(data)
				}
			}()
		}
	}
	if *file > 0 {
		if err := useFile(*file, *again); err != nil {
			return err
		}
	}
	if *grow > 0 {
		go func() {
			if *interleave {
				if err := spread(); err != nil {
					fmt.Println("work:", err)
				}
			}
			growForever(*grow)
		}()
	}
	if *probe {
		go probeForever()
	}
	if *answers != "" {
		go acknowledge(*answers)
	}
	<-end
	fmt.Println("work: ended")
	return nil
}

// interleavePolicy is MPOL_INTERLEAVE of set_mempolicy(2).
const interleavePolicy = 3

// spread has the pages that the calling goroutine touches first come from each cell in turn.
func spread() error {
	runtime.LockOSThread() // the policy is the thread's
	cells := ^uint64(0)    // the kernel leaves out those that there are not
	if _, _, errno := syscall.Syscall(syscall.SYS_SET_MEMPOLICY, interleavePolicy, uintptr(unsafe.Pointer(&cells)), 64); errno != 0 {
		return fmt.Errorf("spread memory over the cells: %w", errno)
	}
	return nil
}

// growForever maps and touches memory until the kernel has no more.
func growForever(mib int) {
	for total := 0; ; time.Sleep(time.Second) {
		data, err := syscall.Mmap(-1, 0, mib<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fmt.Println("work: no more memory:", err)
			return
		}
		touch(data)
		total += mib
		fmt.Println("work: grew to", total, "MiB")
	}
}

// useFile keeps a file in the page cache.
func useFile(mib int, again time.Duration) error {
	const name = "/file"
	if err := os.WriteFile(name, make([]byte, mib<<20), 0o600); err != nil {
		return err
	}
	fmt.Println("work: wrote a file of", mib, "MiB")
	if again > 0 {
		go func() {
			for range time.Tick(again) {
				if f, err := os.Open(name); err == nil {
					_, _ = io.Copy(io.Discard, f)
					_ = f.Close()
				}
			}
		}()
	}
	return nil
}

const (
	// A piece of the probe's work is about a millisecond on an emulated CPU that nothing else uses.
	probeLoops = 300_000
	probeEvery = 20 * time.Millisecond
	probeShown = 10 * time.Second
)

// probeForever does a small piece of work again and again, as a request would come, and prints the quantiles of the time that it took from the
// moment at which it was due.
func probeForever() {
	var took []time.Duration
	shown, due, sink := time.Now(), time.Now(), 0
	for {
		due = due.Add(probeEvery)
		time.Sleep(time.Until(due))
		for i := range probeLoops {
			sink += i
		}
		took = append(took, time.Since(due))
		if late := time.Since(due); late > probeEvery {
			due = time.Now() // what came meanwhile is not made up for
		}
		if time.Since(shown) >= probeShown {
			slices.Sort(took)
			fmt.Printf("probe: n=%d p50=%d p99=%d us %d\n", len(took), took[len(took)/2].Microseconds(), took[len(took)*99/100].Microseconds(), sink&1)
			shown, took, due = time.Now(), took[:0], time.Now()
		}
	}
}

// acknowledge answers each notice with its epoch, as a job does that has saved its work.
func acknowledge(dir string) {
	said := int64(0)
	for range time.Tick(200 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(dir, "notice"))
		var n struct{ Epoch int64 }
		if err != nil || json.Unmarshal(text, &n) != nil || n.Epoch == said {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "ack"), []byte(strconv.FormatInt(n.Epoch, 10)), 0o644); err != nil {
			fmt.Println("work:", err)
			continue
		}
		said = n.Epoch
		fmt.Println("work: saved for epoch", said)
	}
}

// touch writes one byte of each page.
func touch(data []byte) {
	for i := 0; i < len(data); i += 4096 {
		data[i]++
	}
}

// where is what the kernel says of the CPUs and memory nodes of this process.
func where() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	var out []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cpus_allowed_list") || strings.HasPrefix(line, "Mems_allowed_list") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(out, ", ")
}
