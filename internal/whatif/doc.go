// Package whatif plays the history of a service through the real sizing, next to what sizes the service today: what
// would it have cost, and which minutes would have been bad.
//
// It knows one service alone. Pods start after the measured time, the load is what it was, whatever the replicas, and
// no machine is ever full. Quotas, pools, budgets of moves and call chains are left out: the simulator plays those.
package whatif
