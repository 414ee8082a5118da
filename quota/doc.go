// Package quota divides capacity among a tree of tenants: what each is entitled to, what it may borrow from its kin and lend to them,
// and who is short when.
//
// A guarantee is what a tenant always gets back. What it does not use now can be lent, up to its lending limit, and is never given
// away: lending lowers nobody's entitlement. A tenant's time slices lift its guarantee while their windows are open.
package quota
