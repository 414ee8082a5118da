package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// work touches memory, spins, and prints where the kernel lets it run.
func work(args []string) error {
	f := flag.NewFlagSet("work", flag.ContinueOnError)
	mib := f.Int("mib", 0, "MiB of anonymous memory to map and touch")
	spin := f.Int("spin", 0, "goroutines that do nothing but count")
	again := f.Duration("again", 0, "touch the memory again this often (0: once)")
	deaf := f.Bool("deaf", false, "ignore the request to end")
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
	<-end
	fmt.Println("work: ended")
	return nil
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
