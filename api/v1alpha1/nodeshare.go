package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeShare says which holder has which cells of one node. It is the lock: written with the resourceVersion that was read.
//
// A printer column shows one value, so the first two parcels have columns of their own: two sockets are what most machines have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide,shortName=nshare
// +kubebuilder:printcolumn:name="Loan",type=string,JSONPath=`.spec.parcels[0].loanName`,priority=1
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.parcels[0].holder`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.spec.parcels[0].next`
// +kubebuilder:printcolumn:name="2nd Loan",type=string,JSONPath=`.spec.parcels[1].loanName`,priority=1
// +kubebuilder:printcolumn:name="2nd Holder",type=string,JSONPath=`.spec.parcels[1].holder`
// +kubebuilder:printcolumn:name="2nd Next",type=string,JSONPath=`.spec.parcels[1].next`
// +kubebuilder:printcolumn:name="UID",type=string,JSONPath=`.spec.nodeUID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeShare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NodeShareSpec   `json:"spec"`
	Status            NodeShareStatus `json:"status,omitempty"`
}

// NodeShareList is a list of NodeShare.
//
// +kubebuilder:object:root=true
type NodeShareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeShare `json:"items"`
}

// NodeShareSpec is written by the controller.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.leaderEpoch) || (has(self.leaderEpoch) && (self.leaderEpoch >= oldSelf.leaderEpoch || oldSelf.leaderEpoch - self.leaderEpoch >= 1000000))",message="spec.leaderEpoch must not fall: a newer leader wrote this object; stand down and read it again"
// +kubebuilder:validation:XValidation:rule="!has(self.parcels) || self.parcels.all(p, p.cells.all(c, self.parcels.exists_one(q, c in q.cells)))",message="a cell may be in one parcel alone: take it out of the other one first",fieldPath=".parcels"
// +kubebuilder:validation:XValidation:rule="!has(self.parcels) || !has(oldSelf.parcels) || self.parcels.all(p, oldSelf.parcels.all(o, o.loanUID != p.loanUID || o.epoch <= p.epoch || o.epoch - p.epoch >= 1000000))",message="a parcel's epoch must not fall: read the loan and the share again",fieldPath=".parcels"
// +kubebuilder:validation:XValidation:rule="self.nodeUID == oldSelf.nodeUID || !has(self.parcels) || !has(oldSelf.parcels) || self.parcels.all(p, oldSelf.parcels.all(o, o.loanUID != p.loanUID))",message="a parcel belongs to one node UID: end the loans of the machine that is gone before the share takes another UID",fieldPath=".parcels"
type NodeShareSpec struct {
	// NodeUID is the UID of the node that the share is named after.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	NodeUID string `json:"nodeUID"`
	// LeaderEpoch is the fencing number of the controller that wrote last; the API server refuses a fall.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Parcels are the parcels of the node that are not simply at home.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Parcels []ShareParcel `json:"parcels,omitempty"`
	// Rest is how long the machine is not offered again after loans that came to nothing.
	Rest *ShareRest `json:"rest,omitempty"`
}

// ShareRest is the pause of a machine whose loans were turned back: called off before the borrower had it, or recalled before its term.
type ShareRest struct {
	// TurnedBack is how many of the machine's last loans were turned back, one after another; each makes the rest twice as long, up to an hour.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	TurnedBack int32 `json:"turnedBack"`
	// Until is when the machine may be offered again.
	Until metav1.Time `json:"until"`
}

// ShareParcel is one parcel of the node that is not simply at home.
//
// +kubebuilder:validation:XValidation:rule="!has(self.next) || self.next != self.holder",message="next must be another pool than holder, or be left out when nothing moves"
type ShareParcel struct {
	// Cells are the parcel's NUMA cells.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	Cells []int32 `json:"cells"`
	// Holder is the pool that has the cells.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Holder string `json:"holder"`
	// Next is the pool that the cells are being emptied for; absent when nothing moves.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	Next string `json:"next,omitempty"`
	// LoanName names the loan.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	LoanName string `json:"loanName"`
	// LoanUID is the loan's UID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	LoanUID string `json:"loanUID"`
	// Epoch is the loan's epoch: the node side answers for this epoch.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	Epoch int64 `json:"epoch"`
}

// NodeShareStatus is written by the node side: the node's agent, or the controller for a machine that never had one.
type NodeShareStatus struct {
	// Reporter says who wrote the reports: agent, or controller.
	// +kubebuilder:validation:Enum=agent;controller
	Reporter string `json:"reporter,omitempty"`
	// Agent records the first agent of the node. While it stands, a silent agent or a deleted Lease is never taken for none: the controller
	// decides nothing in the agent's place. The agent's uninstall clears it, or springtide node forget-agent.
	Agent *ShareAgent `json:"agent,omitempty"`
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Parcels are the node side's reports.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Parcels []ParcelReport `json:"parcels,omitempty"`
	// Pods are those that hold cells or cores of their own, by name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Pods []PodHolding `json:"pods,omitempty"`
	// Evictions are those of the last ten minutes by the agent.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Evictions []AgentEviction `json:"evictions,omitempty"`
	// Acks are the acknowledgements of schedulers: no binding that was decided before a generation of the spec was seen is under way any more.
	// +listType=map
	// +listMapKey=instance
	// +kubebuilder:validation:MaxItems=64
	Acks []ShareAck `json:"acks,omitempty"`
	// Conditions are what the node's agent can enforce here: CPUSets, CPUIdle, CPUQuota, MemoryBox, MemoryReclaim, PressureStall, IOWeight,
	// IOCost, CacheAndBandwidth, NetworkClass, RuntimeHooks, StateKept, OOMOrder, MemoryProtection, Evictions.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ShareAck is the acknowledgement of one partition of the bundled scheduler.
type ShareAck struct {
	// Instance is the name of the partition's Lease.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Instance string `json:"instance"`
	// Generation is that of the spec: every binding to the node that was decided before the partition saw it has a definite answer, and what is decided
	// later follows it.
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`
}

// ShareAgent is the record of a node's agent.
type ShareAgent struct {
	// NodeUID is the UID of the node that the agent ran on: a node that was made again under the same name has had none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	NodeUID string `json:"nodeUID"`
	// FirstSeen is when the agent was seen first.
	FirstSeen metav1.Time `json:"firstSeen"`
}

// Reporters of a NodeShare's status.
const (
	ReporterAgent      = "agent"
	ReporterController = "controller"
)

// AgentEviction is one pod that the node's agent evicted, written before the act. The controller counts it in the ledger of the node's pool.
type AgentEviction struct {
	// Owner is whose pod it was: namespace and controller.
	// +kubebuilder:validation:MaxLength=512
	Owner string `json:"owner"`
	// Rule is the threshold that was passed, as in MemoryStall.
	// +kubebuilder:validation:MaxLength=63
	Rule string `json:"rule"`
	// Time is when it was decided.
	Time metav1.Time `json:"time"`
}

// PodHolding is what one pod holds of the machine.
type PodHolding struct {
	// Pod is namespace and name.
	// +kubebuilder:validation:MaxLength=320
	Pod string `json:"pod"`
	// Class is the pod's class: dedicated, shared, reclaimed or system.
	// +kubebuilder:validation:MaxLength=32
	Class string `json:"class"`
	// Cells are the NUMA cells that the pod is bound to.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	Cells []int32 `json:"cells,omitempty"`
	// CPUs are the pod's own cores, as a Linux list; empty for a pod that shares those of its cells.
	// +kubebuilder:validation:MaxLength=1024
	CPUs string `json:"cpus,omitempty"`
	// Chosen says that the agent chose the cells, since no annotation springtide.dev/cells named them.
	Chosen bool `json:"chosen,omitempty"`
}

// ParcelReport is what the node side did for one loan's epoch.
//
// +kubebuilder:validation:XValidation:rule="!self.clean || has(self.time)",message="a Clean report must say when it was seen: set time"
type ParcelReport struct {
	// LoanUID is the loan's UID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	LoanUID string `json:"loanUID"`
	// Epoch is the epoch that the report answers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	Epoch int64 `json:"epoch"`
	// Clean says that the cells were seen empty of the pods that had to leave, and that those who stay are confined to other cells.
	Clean bool `json:"clean"`
	// Time is when Clean was seen.
	Time *metav1.Time `json:"time,omitempty"`
	// Waits is what the parcel waits for while it is not clean: Agent, Ready, Pods, Binds, Marks, Processes, Memory, Acks or Margin.
	// +kubebuilder:validation:MaxLength=32
	Waits string `json:"waits,omitempty"`
	// Occupants are pods that still keep the cells from being clean, the first few by name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Occupants []string `json:"occupants,omitempty"`
}
