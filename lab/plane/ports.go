package plane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the kernel's range for outgoing connections (32768 and up on Linux). A component may be down for
// minutes and must find its port free when it comes back; a port of that range could meanwhile belong to a client.
const (
	lowestPort  = 20000
	highestPort = 32767
)

// FreePorts finds n free TCP ports on loopback, all held open until the last is found so that none is given twice.
// Numbers are drawn at random, so that planes of parallel tests seldom meet.
func FreePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // it was only ever a mark on the port
		}
	}()
	var ports []int
	var last error
	for try := 0; len(ports) < n; try++ {
		if try == 100*n {
			return nil, errors.Join(fmt.Errorf("no %d free ports on loopback between %d and %d", n, lowestPort, highestPort), last)
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return ports, nil
}
