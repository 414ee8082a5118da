// Package clock holds the two clocks that decisions may live in: the wall clock of a user's cluster ([Wall]), and the lab's virtual one
// ([Remote]), which stands still while the controller thinks. Both implement loop.Clock.
//
// In the lab the API server, controller-manager and scheduler still stamp by the wall. Their stamps have a resolution of one second, in
// which the lab may pass several virtual minutes; [Anchors] brings them into virtual time as well as that allows.
package clock
