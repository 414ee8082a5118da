// Package process runs pods as real processes of this machine: where the rest of the lab plays what a pod does, a pod
// whose container has a command is started, gets its notices, and is stopped by signals, and its status says what came
// of it.
//
// It is the part of a kubelet that training needs. A pod has one container, with a command and restartPolicy Never. Its image is not
// looked at: the command is one of this machine. Volumes of kind emptyDir and downwardAPI are directories of the pod's own, hostPath is
// what it names, and mount paths in command, arguments and environment stand for those directories. SIGTERM goes to the command when the
// pod is deleted, SIGKILL to all of its process group when the grace is over or the command has ended.
//
// Next to the pod it does what the side-car of a real job would: answers that the process leaves in files go to the
// annotations of the pod and of its ElasticJob (see [AnswersVolume]).
//
// Processes live by the wall while the cluster lives by the lab's clock, so this is for runs at speed 1. Times that cross between the two
// (a notice's deadline, a heartbeat, a checkpoint) keep their distance from now.
package process
