// Package clock is the lab's virtual clock, served on loopback to the controllers under test.
//
// Time moves only when the lab says so, and the lab says so only when every controller is parked: what a cycle or the
// API server costs in wall time is not charged as virtual minutes. A controller is known from its first park until it
// goes away (its park is cut off, or the lab saw its process end). While a controller, the API server or Prometheus is
// down on purpose the lab waits for no controller, so that an outage costs the virtual time that it lasts.
package clock
