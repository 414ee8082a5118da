// Package shape decides what the cgroups of one machine should say. In come the machine's topology, who holds which cells, the pods with their
// classes, and measured signals; out come the wanted values, the ordered writes that lead there from what was observed, the capacity that
// reclaimed pods may use, and who is evicted under pressure. Nothing here touches the machine: a journal of its writes can be replayed.
package shape
