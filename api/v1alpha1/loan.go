package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Loan is one parcel away from home: created before the first effect of the move, deleted after the return.
//
// Times are shown as times, not as ages: Due and Deadline lie ahead, which an age cannot show.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from`
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=`.spec.to`,priority=1
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
// +kubebuilder:printcolumn:name="Since",type=string,JSONPath=`.status.since`,priority=1
// +kubebuilder:printcolumn:name="Expected Until",type=string,JSONPath=`.status.expectedUntil`,priority=1
// +kubebuilder:printcolumn:name="Due",type=string,JSONPath=`.status.due`
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.status.deadline`,priority=1
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.capacity.cpu`,priority=1
// +kubebuilder:printcolumn:name="Begun",type=string,JSONPath=`.spec.beginTime`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.leaderEpoch) || (has(self.status) && has(self.status.leaderEpoch) && (self.status.leaderEpoch >= oldSelf.status.leaderEpoch || oldSelf.status.leaderEpoch - self.status.leaderEpoch >= 1000000))",message="status.leaderEpoch must not fall: a newer leader wrote this object; stand down and read it again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.epoch) || (has(self.status) && has(self.status.epoch) && (self.status.epoch >= oldSelf.status.epoch || oldSelf.status.epoch - self.status.epoch >= 1000000))",message="status.epoch must not fall: reports and acknowledgements of an older epoch are void; read the loan again"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.phase) ? !has(oldSelf.status) || !has(oldSelf.status.phase) : self.status.phase in {'New': ['Emptying', 'Lent', 'Noticed', 'Cancelled'], 'Emptying': ['Emptying', 'Lent', 'Cancelled'], 'Lent': ['Lent', 'Noticed', 'Returned'], 'Noticed': ['Noticed', 'Lent', 'Draining', 'Returned'], 'Draining': ['Draining', 'Fenced', 'Returned'], 'Fenced': ['Fenced', 'WrittenOff', 'Returned'], 'WrittenOff': ['WrittenOff', 'Returned'], 'Returned': ['Returned'], 'Cancelled': ['Cancelled']}[has(oldSelf.status) && has(oldSelf.status.phase) ? oldSelf.status.phase : 'New']",message="status.phase must follow Emptying, Lent, Noticed, Draining, Returned (with the side steps Cancelled, Fenced and WrittenOff): read the loan again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.due) || !has(oldSelf.status.firstNotice) || !has(self.status) || !has(self.status.firstNotice) || self.status.firstNotice != oldSelf.status.firstNotice || (has(self.status.due) && self.status.due <= oldSelf.status.due)",message="status.due is fixed at the first notice and only ever moves earlier; take the notice back (phase Lent) to set another"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.phase) || self.status.phase != 'Returned' || !has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Lent', 'Noticed']) || (has(self.status.vanishedNodeUID) && self.status.vanishedNodeUID == self.spec.nodeUID)",message="status.phase Returned from Lent or Noticed must name the machine that vanished (status.vanishedNodeUID = spec.nodeUID): a machine that is there comes home by a notice, as springtide recall gives one"
type Loan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              LoanSpec   `json:"spec"`
	Status            LoanStatus `json:"status,omitempty"`
}

// LoanList is a list of Loan.
//
// +kubebuilder:object:root=true
type LoanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Loan `json:"items"`
}

// LoanSpec names the parcel and the two pools; it never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a loan's spec never changes: end this loan and begin another"
// +kubebuilder:validation:XValidation:rule="self.from != self.to",message="from and to must be two pools"
type LoanSpec struct {
	// NodeName names the machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	NodeName string `json:"nodeName"`
	// NodeUID is the machine's UID: it is what counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	NodeUID string `json:"nodeUID"`
	// Kind is Node or Socket.
	// +kubebuilder:validation:Enum=Node;Socket
	Kind string `json:"kind"`
	// Cells are the NUMA cells that move.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	Cells []int32 `json:"cells"`
	// From is the home pool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	From string `json:"from"`
	// To is the borrower.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be an object's name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	To string `json:"to"`
	// Capacity is what the parcel holds.
	Capacity ResourceAmounts `json:"capacity"`
	// BeginTime is when the loan was begun, in the controller's time.
	BeginTime metav1.Time `json:"beginTime"`
}

// LoanStatus is where the loan stands. An empty phase means Emptying with epoch 1: the loan was just created. A loan that
// is made again for a parcel in use begins in Noticed.
type LoanStatus struct {
	// Phase is where the loan stands.
	// +kubebuilder:validation:Enum=Emptying;Lent;Noticed;Draining;Fenced;WrittenOff;Returned;Cancelled
	Phase string `json:"phase,omitempty"`
	// Epoch rises at each hand-over.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	Epoch int64 `json:"epoch,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote last; the API server refuses a fall.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Since is when the phase was entered.
	Since *metav1.Time `json:"since,omitempty"`
	// Due is when the parcel is wanted back: as the forecast says from the start, and fixed at the first notice.
	Due *metav1.Time `json:"due,omitempty"`
	// ExpectedUntil is until when the borrower may expect to keep the parcel, while it is lent: earlier the forecast,
	// at the quantile that services are sized by, does not ask for it. A parcel that online borrows is expected to stay
	// until it is due. It is no promise; a recall gives notice all the same.
	ExpectedUntil *metav1.Time `json:"expectedUntil,omitempty"`
	// Deadline is the latest announced deadline.
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// KillTime is when evicted pods that are still on the draining parcel are killed. It is announced once the first eviction was accepted, and
	// at the latest when the pool's evictionPatienceSeconds after the deadline are over; it is only ever put off.
	KillTime *metav1.Time `json:"killTime,omitempty"`
	// FirstNotice is when the recall began.
	FirstNotice *metav1.Time `json:"firstNotice,omitempty"`
	// LentTime is when the borrower became the holder.
	LentTime *metav1.Time `json:"lentTime,omitempty"`
	// CleanTime is when the node side reported Clean after the recall.
	CleanTime *metav1.Time `json:"cleanTime,omitempty"`
	// VanishedNodeUID is the UID of the machine once it is gone from the cluster, which ended the loan.
	// +kubebuilder:validation:MaxLength=128
	VanishedNodeUID string `json:"vanishedNodeUID,omitempty"`
	// Claimant is the ElasticService, as namespace/name, whose waiting pods the parcel is recalled for: the bundled scheduler keeps the room for its
	// pods when the parcel is home. Empty where a forecast recalls for all services of the pool: then it keeps the room for the pool.
	// +kubebuilder:validation:MaxLength=512
	Claimant string `json:"claimant,omitempty"`
	// Reason is the last step in one sentence.
	// +kubebuilder:validation:MaxLength=2048
	Reason string `json:"reason,omitempty"`
	// History lists the phases in the order they were entered, the newest last.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	History []PhaseChange `json:"history,omitempty"`
	// Conditions: Clean, Noticed, Forced, Late, AgentAlive.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PhaseChange is one entry of a loan's history.
type PhaseChange struct {
	// Phase that was entered.
	// +kubebuilder:validation:Enum=Emptying;Lent;Noticed;Draining;Fenced;WrittenOff;Returned;Cancelled
	Phase string `json:"phase"`
	// Epoch of the loan then.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	Epoch int64 `json:"epoch"`
	// Time is when.
	Time metav1.Time `json:"time"`
}
