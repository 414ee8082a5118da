package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Loan is one parcel away from home: created before the first effect of the move, deleted after the return.
type Loan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              LoanSpec   `json:"spec"`
	Status            LoanStatus `json:"status,omitempty"`
}

// LoanList is a list of Loan.
type LoanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Loan `json:"items"`
}

// LoanSpec names the parcel and the two pools; it never changes.
type LoanSpec struct {
	// NodeName and NodeUID name the machine; the UID is what counts.
	NodeName string `json:"nodeName"`
	NodeUID  string `json:"nodeUID"`
	// Kind is Node or Socket, Cells the NUMA cells that move.
	Kind  string  `json:"kind"`
	Cells []int32 `json:"cells"`
	// From is the home pool, To the borrower.
	From string `json:"from"`
	To   string `json:"to"`
	// Capacity is what the parcel holds.
	Capacity ResourceAmounts `json:"capacity"`
	// BeginTime is when the loan was begun, in the controller's time.
	BeginTime metav1.Time `json:"beginTime"`
}

// LoanStatus is where the loan stands. An empty phase means Emptying with epoch 1: the loan was just created.
type LoanStatus struct {
	Phase string `json:"phase,omitempty"`
	// Epoch rises at each hand-over.
	Epoch int64 `json:"epoch,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote last; the API server refuses a fall.
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Since is when the phase was entered.
	Since *metav1.Time `json:"since,omitempty"`
	// Due is when the parcel is wanted back, Deadline the latest announced deadline.
	Due      *metav1.Time `json:"due,omitempty"`
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// FirstNotice, LentTime and CleanTime are the milestones of the loan.
	FirstNotice *metav1.Time `json:"firstNotice,omitempty"`
	LentTime    *metav1.Time `json:"lentTime,omitempty"`
	CleanTime   *metav1.Time `json:"cleanTime,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	// History lists the phases in the order they were entered, the newest last.
	History    []PhaseChange      `json:"history,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PhaseChange is one entry of a loan's history.
type PhaseChange struct {
	Phase string      `json:"phase"`
	Epoch int64       `json:"epoch"`
	Time  metav1.Time `json:"time"`
}

// NodeShare says which holder has which cells of one node. It is the lock: written with the resourceVersion that was read.
type NodeShare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NodeShareSpec   `json:"spec"`
	Status            NodeShareStatus `json:"status,omitempty"`
}

// NodeShareList is a list of NodeShare.
type NodeShareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeShare `json:"items"`
}

// NodeShareSpec is written by the controller.
type NodeShareSpec struct {
	NodeUID     string        `json:"nodeUID"`
	LeaderEpoch int64         `json:"leaderEpoch,omitempty"`
	Parcels     []ShareParcel `json:"parcels,omitempty"`
}

// ShareParcel is one parcel of the node that is not simply at home.
type ShareParcel struct {
	Cells  []int32 `json:"cells"`
	Holder string  `json:"holder"`
	// Next is the pool that the cells are being emptied for; absent when nothing moves.
	Next string `json:"next,omitempty"`
	// LoanName and LoanUID name the loan, Epoch its epoch: the node side answers for this epoch.
	LoanName string `json:"loanName"`
	LoanUID  string `json:"loanUID"`
	Epoch    int64  `json:"epoch"`
}

// NodeShareStatus is written by the node side.
type NodeShareStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Parcels            []ParcelReport     `json:"parcels,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ParcelReport is what the node side did for one loan's epoch.
type ParcelReport struct {
	LoanUID string `json:"loanUID"`
	Epoch   int64  `json:"epoch"`
	// Clean says that the cells were seen empty of the pods that had to leave, and that those who stay are confined to other cells.
	Clean bool `json:"clean"`
	// Time is when Clean was seen.
	Time *metav1.Time `json:"time,omitempty"`
	// Occupants are pods that still keep the cells from being clean.
	Occupants []string `json:"occupants,omitempty"`
}
