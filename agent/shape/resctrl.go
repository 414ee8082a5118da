package shape

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// ResctrlInfo is what the machine says of its classes of cache and memory bandwidth.
type ResctrlInfo struct {
	// Root is the schemata of the root class: all that there is.
	Root string
	// MinBits is the least number of cache ways of a class, BandwidthGranule and BandwidthMin bound the percentages of bandwidth.
	MinBits, BandwidthGranule, BandwidthMin int
}

// Schemata is the class of reclaimed work: a share of the ways of the last cache, those with the lowest numbers, and a share of memory bandwidth. A
// share of 0 or 100 leaves a resource out. Only L3 and MB are limited.
func (i *ResctrlInfo) Schemata(cachePercent, bandwidthPercent int) (string, error) {
	var out []string
	for line := range strings.Lines(i.Root) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if name = strings.TrimSpace(name); !ok {
			continue
		}
		var value func(mask string) (string, error)
		switch {
		case name == "L3" && cachePercent > 0 && cachePercent < 100:
			value = func(mask string) (string, error) { return i.ways(mask, cachePercent) }
		case name == "MB" && bandwidthPercent > 0 && bandwidthPercent < 100:
			value = func(string) (string, error) {
				granule := max(i.BandwidthGranule, 1)
				return strconv.Itoa(max(bandwidthPercent/granule*granule, i.BandwidthMin, 1)), nil
			}
		default:
			continue
		}
		var domains []string
		for pair := range strings.SplitSeq(rest, ";") {
			id, all, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok {
				return "", fmt.Errorf("schemata %q: %q is no domain", line, pair)
			}
			v, err := value(strings.TrimSpace(all))
			if err != nil {
				return "", fmt.Errorf("schemata %q: %w", line, err)
			}
			domains = append(domains, id+"="+v)
		}
		out = append(out, name+":"+strings.Join(domains, ";"))
	}
	slices.Sort(out)
	return strings.Join(out, "\n"), nil
}

// ways is a mask of the lowest ways of a cache: the hardware wants neighbours.
func (i *ResctrlInfo) ways(mask string, percent int) (string, error) {
	all, err := strconv.ParseUint(mask, 16, 64)
	if err != nil || all == 0 {
		return "", fmt.Errorf("%q is no mask of ways", mask)
	}
	n := max(bits.OnesCount64(all)*percent/100, i.MinBits, 1)
	return strconv.FormatUint(1<<min(n, 63)-1, 16), nil
}
