package judge

import (
	"slices"
	"time"
)

// Side is whose work a pod is.
type Side string

// The sides. A pod of neither takes room, and no rule is about it.
const (
	Online  Side = "online"
	Offline Side = "offline"
	Neither Side = ""
)

// Amount is room by resource, in the smallest unit of each: thousandths of a core, bytes, pieces.
type Amount map[string]int64

// fits reports whether a pod finds its room in what is free.
func (a Amount) fits(free Amount) bool {
	for name, v := range a {
		if v > free[name] {
			return false
		}
	}
	return true
}

// Ref names an object.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Node is a machine as the API server has it.
type Node struct {
	Name, UID string
	Labels    map[string]string
	// HolderTaint and FencedTaint are Springtide's own, ForeignTaint says that another one keeps pods off.
	HolderTaint, FencedTaint, ForeignTaint bool
	Ready, Cordoned                        bool
	Room                                   Amount
}

// Pod is a pod as the API server has it.
type Pod struct {
	Ref
	UID, Node string
	Side      Side
	// Owner is the workload that it belongs to: of a Deployment's pods the Deployment.
	Owner   Ref
	Request Amount
	// Selector is what a node's labels must hold. Picky says that the pod has further demands, which the judge cannot weigh.
	Selector map[string]string
	Picky    bool
	// Filler holds room for others and yields to them.
	Filler bool
	// Cells are the cells that were chosen for it; none where it is bound to none.
	Cells                    []int
	Ready, Leaving, Finished bool
	Grace                    time.Duration
	Notice                   Notice
	// Acked is the epoch of the notice that it answered; 0 for none.
	Acked int64
}

// Notice is the notice that a pod carries.
type Notice struct {
	Loan     string
	Epoch    int64
	Deadline time.Time
}

// Loan is a loan as the API server has it.
type Loan struct {
	Name, UID, Node, NodeUID, From, To string
	Cells                              []int
	Phase                              string
	Epoch                              int64
	Deadline, KillTime                 time.Time
	// Reason is its last step in words, Conditions what it says of itself: type, status, reason and message of each.
	Reason     string
	Conditions []Condition
	// History are the phases that it entered, in order.
	History []string
}

// Condition is one of an object's conditions.
type Condition struct{ Type, Status, Reason, Message string }

// Share says who has which cells of a machine.
type Share struct {
	Node, NodeUID string
	Parcels       []Parcel
}

// Parcel is some cells of a machine in one hand.
type Parcel struct {
	Cells             []int
	Holder, Next      string
	LoanName, LoanUID string
	Epoch             int64
}

// Pool is a pool of machines.
type Pool struct {
	Name string
	Side Side
	// ByCells says that the bundled scheduler serves it, which reads the cells of NodeShares.
	ByCells bool
	// Notice is what its borrowers are announced at least.
	Notice time.Duration
	// Matches finds the machines at home in it by their labels.
	Matches func(labels map[string]string) bool
}

// Service is an ElasticService.
type Service struct {
	Ref
	Target     Ref
	Acts       bool // mode Auto, and not paused
	Max        int
	Desired    int
	Conditions []Condition

	at time.Time // when it was seen so
}

// Deployment is the target of a service.
type Deployment struct {
	Ref
	UID      string
	Replicas int

	changed time.Time // when its size was seen to change
}

// Topology counts a machine's cells.
type Topology struct {
	Node  string
	Cells int
}

// Lease is that of the controllers' leader.
type Lease struct {
	Holder      string
	Transitions int
}

// Event is a warning that was recorded about an object.
type Event struct {
	About Ref
	Text  string
}

// Request is one line of the API server's audit log.
type Request struct {
	// ID is the request's own: a line that is read twice counts once.
	ID   string
	User string
	Verb string
	// Resource is the plural name, with the subresource: pods/eviction.
	Resource string
	Ref
	Code int
	Text string
}

// refused reports whether the API server said no for good reasons: not a race, and not an object that is gone.
func (r *Request) refused() bool { return r.Code >= 400 && r.Code != 404 && r.Code != 409 }

// Gone says that an object was deleted. Object is its last state.
type Gone struct{ Object any }

// Whole is all objects of a kind, as a new list shows them: what is not in it is gone. Kind is an object of that kind.
type Whole struct {
	Kind    any
	Objects []any
}

// Truth is what the world knows at the time of a step.
type Truth struct {
	At time.Time `json:"at"`
	// Down names what was taken down on purpose and is not back yet: apiserver, etcd, prometheus, controller.
	Down []string `json:"down,omitempty"`
	// Services are those that the world plays.
	Services []TrueService `json:"services"`
}

// Leaderless reports whether no controller can lead: it is down itself, or it cannot renew its lease.
func (t *Truth) Leaderless() bool { return t.Stalled() || slices.Contains(t.Down, "controller") }

// Stalled reports whether the API server answers nothing.
func (t *Truth) Stalled() bool {
	return slices.Contains(t.Down, "apiserver") || slices.Contains(t.Down, "etcd")
}

// TrueService is the true load of a service, as the replicas that carry it within its service level.
type TrueService struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"` // of the workload
	Need      float64 `json:"need"`
}

// Look is what the judge's eyes say of themselves at the time of a step.
type Look struct {
	Truth
	// Blind says that the judge does not see the cluster: a watch is broken.
	Blind bool
	// Source says whether the source of the metrics answers, with samples of the last minutes; SourceSays is what it said instead.
	Source     bool
	SourceSays string
	// Leader says that a controller renewed its lease within the last minute, by the wall.
	Leader bool
}
