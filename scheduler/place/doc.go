// Package place knows what fits where: a [Table] of machines with their free room, and the operations that put pods into it, take them
// out, and undo both. The planner asks it what offline work there is room for and which socket can be freed, the simulator places with it,
// and the bundled scheduler decides with it. docs/designs/0003-scheduler.md has the whole.
//
// # Facts and decisions
//
// [Table.SetMachine] and [Table.RemoveMachine] follow the machines, [Table.Bound] and [Table.Remove] the pods that others report. [Table.Decide] chooses a
// machine by score and holds the room from that moment on; [Table.Confirm] and [Table.Forget] say what became of it. A table that was changed decides as one
// that is built from the outcome, whatever the order of the changes. [FromSnapshot] builds one from the facts of a moment.
//
// A class has an index (a view) that catches up with the machines that changed since it was last asked. The answer has
// the best score of all machines, so equal pods land where as many separate choices would.
//
// # Rows
//
// A machine of which a socket is lent is two machines to its pods: online may use the cells that online holds, offline
// those that offline holds. So the table has two rows a machine, one for each side, and its columns (free CPU, memory,
// GPUs, pods) are arrays by row. The facts are taken as they are: a row that is overdrawn has negative room, gives
// none, and takes as much from the other row of its machine. A placement never makes room negative.
//
// # Cells
//
// A pod that is bound to NUMA cells holds amounts of named cells from the moment of the decision, so the next decision cannot promise
// them again. (A scheduler that only filters by topology accepts three pods that want one cell each where one cell is free.) A pod that is not
// bound floats over the cells of its side: it counts against the row and against no cell, since the kernel moves it out of the way of
// those that are bound. A pod must fit its cells and the row.
//
// # Finding the fullest machine
//
// Packing puts a pod on the fullest machine that it fits: the one with the fewest free GPUs, then the least free CPU, then the first id. Rows
// are kept in ordered trees, one for each domain (side, pool, at home or lent, GPU model, zone), with the most room of each kind below every
// branch, so that branches in which nothing fits are passed by and the first fit in order is the best one: no sampling, and no list of machines
// that were good for the last pod of the same owner, which is quick and forgets the score. The trees are treaps with priorities hashed from the row
// (Seidel and Aragon, Randomized search trees, Algorithmica 16, 1996): their shape depends on the keys alone and not on the way that led to them, so that
// undoing restores the very same bytes.
//
// Equal pods are one class ([Shape]), interned to a number. Work without GPUs goes to machines with GPUs last, elastic offline work to lent
// room first, online work to borrowed room last. Where a shape asks to be spread over zones, the zone with the fewest pods of its group comes before
// all of this.
//
// # What is exact
//
// Every answer "fits" is true: it is a placement. [Table.Fits] counts exactly what [Table.Place] would place. For pods that float or want one
// cell, a pod or a gang of equal pods is refused only where no way exists. Pods over several cells, gangs of unlike pods and the emptying of a
// machine are vector bin packing, which is NP-hard; they are answered by best fit, largest first, and may be refused where a search over all
// ways would have found one.
//
// Fragmentation is computed per class, as in Weng et al., Beware of Fragmentation (USENIX ATC 2023): room is fragmented
// for a class of pods, not in itself.
package place
