// Package quota divides capacity among a tree of tenants: what each is entitled to, what it may borrow from its siblings and lend to them,
// who is short when, and what must be given back by when.
//
// # Guarantees
//
// A guarantee is what a tenant always gets back: what it does not use can be lent, up to its lending limit, and is never given away. A
// tenant's time slices lift its guarantee while their windows are open. Promises are kept whole or scaled down, never oversold: the
// children of a tenant hold at most what it holds, and the trees together at most the supply. Guarantees come before lifts, so that no
// neighbour's slice ever costs a tenant its own; where either do not fit, all of their kind are scaled down alike, and [Division.Oversold]
// says so, days ahead where a slice is the reason.
//
// # Borrowing
//
// The rest is lent inside of a tree, along its edges: no tenant takes in more than its borrowing limit or lets out more
// than its lending limit, itself and all below it together; trees share what no guarantee names. Wishes of online
// services come first, those of offline work after them. Within each, what is left is shared by dominant resource
// fairness (Ghodsi et al., NSDI 2011), by level of the tree (Bhattacharya et al., SoCC 2013): siblings' dominant shares
// of what they borrow grow alike. Only who can still take something counts for the pace of its parent, so that no
// tenant waits behind a neighbour that is satisfied or lacks another resource.
//
// # Giving back
//
// Amounts that a lender wants again, or that a slice or a burst covers no longer, are reported at once and given back
// within the tenant's drain time ([Share.Over], [Share.Deadline]). The look ahead over that same time lets the notice
// of a slice's end precede it. Parcels (whole machines and sockets under offline work) go back by the same notices.
package quota
