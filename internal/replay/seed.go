package replay

import "hash/fnv"

// Seed makes a seed of names: the same names in the same order give the same draws everywhere.
func Seed(names ...string) uint64 {
	h := fnv.New64a()
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return h.Sum64()
}
