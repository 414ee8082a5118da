// Package host is the node agent's hands and eyes. It reads the machine's topology and cgroups under roots that tests inject, hears of pods and
// the NodeShare from the API server and of containers from the runtime (NRI), asks agent/shape what the cgroups should say and agent/share
// whether a parcel is clean, writes what differs, and reports.
//
// The truth is rebuilt from the runtime, the cgroups and the API server at each start. The share on disk is what holds while the API server is
// away.
package host
