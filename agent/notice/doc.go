// Package notice passes checkpoint notices to the processes of a pod and brings their answers back. In come the notice of a pod and the directory
// of its volume springtide-answers; out come the file "notice" in it, an optional call of the hook that the pod declares, and what the pod's
// processes left in the files ack, heartbeat and checkpoint.
//
// A pod owns the directory: it may put links, pipes or endless files there. Nothing outside of the directory is written or read, nothing is waited
// for, and no more than a line is read.
package notice
