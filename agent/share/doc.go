// Package share decides when a parcel is Clean. In come the NodeShare of a machine, the machine's marks and what runs on it; out comes, for
// each parcel that moves, whether its cells are empty of the pods that must leave them, and otherwise what it waits for.
//
// It is the only answer to that question: node agents, the controller on machines without an agent, the lab, the simulators and the model
// check ask here.
package share
