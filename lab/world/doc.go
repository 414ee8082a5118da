// Package world is the lab's world: a fleet of machines, online services under replayed load, and offline jobs, all played on a real
// control plane at virtual time.
//
// The world is everything that a cluster has and the product has not: it makes pods ready after their start-up time and takes them away
// after their grace, answers load with a queueing model, exports metrics under the names of real exporters, lets jobs work, save and
// follow notices, and plays the node side of a NodeShare. It meets the product in the Kubernetes API and in Prometheus alone.
//
// On machines that are named in [Options] pods with a command are not played but run, as processes of this machine (package process).
//
// Time moves in steps. A step begins when every controller is parked and the control plane has no pod change pending; then the clock is
// moved, the world is brought to the new time, and the controllers whose time has come are let go (see [World.Run]).
package world
