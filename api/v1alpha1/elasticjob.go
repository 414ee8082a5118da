package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ElasticJob lets Springtide resize offline workloads that exist between their bounds as capacity comes and goes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=springtide,shortName=ejob
// +kubebuilder:printcolumn:name="Priority",type=string,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Gang",type=string,JSONPath=`.status.gang.phase`
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.eta.expected`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Recalled",type=string,JSONPath=`.status.lastRecallTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
type ElasticJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ElasticJobSpec   `json:"spec"`
	Status            ElasticJobStatus `json:"status,omitempty"`
}

// ElasticJobList is a list of ElasticJob.
//
// +kubebuilder:object:root=true
type ElasticJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticJob `json:"items"`
}

// ElasticJobSpec is what the operator wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || self.members.exists(m, m.role == self.hosts.role)",message="hosts.role names no member: give it the role of one of spec.members, as in worker",fieldPath=".hosts.role"
type ElasticJobSpec struct {
	// Priority is Low or High.
	// +kubebuilder:validation:Enum=Low;High
	// +kubebuilder:default=Low
	Priority string `json:"priority,omitempty"`
	// Members are the roles of the job.
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(m, self.exists_one(n, n.workloadRef == m.workloadRef && (m.workloadRef.apiVersion == 'batch/v1' || (has(n.part) ? n.part : n.role) == (has(m.part) ? m.part : m.role))))",message="a workload, or a part of it, may be named by one member alone"
	Members []JobMember `json:"members"`
	// Checkpoint is how the job saves its work.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Hosts publishes where the members of a ring are, as the discovery script of elastic Horovod says it.
	Hosts *HostList `json:"hosts,omitempty"`
	// GangTimeoutSeconds is how long the minimum may be asked for without being whole. After that it gives back the room that it holds and is tried
	// again later. Where the bundled scheduler places the pods, the scheduler measures this time and reports its end on the pods that wait.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=300
	GangTimeoutSeconds int32 `json:"gangTimeoutSeconds,omitempty"`
}

// JobMember is one role of the job.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not exceed max"
// +kubebuilder:validation:XValidation:rule="!(has(self.divisible) && self.divisible && has(self.stable) && self.stable)",message="divisible work fills what others leave, lent room too; a stable member never runs there: say one of the two"
type JobMember struct {
	// Role is unique within the job, as in "worker".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Role string `json:"role"`
	// WorkloadRef is the workload to resize: one that exists in this namespace.
	// +kubebuilder:validation:XValidation:rule="self.apiVersion + ' ' + self.kind in ['batch.volcano.sh/v1alpha1 Job', 'batch/v1 Job', 'jobset.x-k8s.io/v1alpha2 JobSet', 'kubeflow.org/v1 PyTorchJob', 'kubeflow.org/v2beta1 MPIJob', 'ray.io/v1 RayCluster', 'sparkoperator.k8s.io/v1beta2 SparkApplication', 'trainer.kubeflow.org/v1alpha1 TrainJob']",message="no adapter resizes this kind: name a batch/v1 Job, kubeflow.org/v2beta1 MPIJob, kubeflow.org/v1 PyTorchJob, jobset.x-k8s.io/v1alpha2 JobSet, ray.io/v1 RayCluster, sparkoperator.k8s.io/v1beta2 SparkApplication, batch.volcano.sh/v1alpha1 Job or trainer.kubeflow.org/v1alpha1 TrainJob"
	WorkloadRef TargetRef `json:"workloadRef"`
	// Part is the part of the workload that this role is, the role's name when empty. Worker group of a RayCluster;
	// replicated job of a JobSet; task of a Volcano Job; "worker" or "launcher" of an MPIJob; "worker" or "master" of a
	// PyTorchJob; "executor" or "driver" of a SparkApplication. A batch/v1 Job has no parts.
	// +kubebuilder:validation:MaxLength=63
	Part string `json:"part,omitempty"`
	// Min is what the member works with at least. On room of its own it is taken below only under an approved festival plan that says
	// takeStable; what of it stands on lent room goes home with that.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Min int32 `json:"min"`
	// Max is what the member can use.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max int32 `json:"max"`
	// Stable members never run on lent capacity: their pods ask for machines with the label springtide.dev/home=offline.
	Stable bool `json:"stable,omitempty"`
	// Divisible work has no gang: each pod works alone, leaves within seconds of a notice and loses little (Spark executors, transcoding).
	// It fills the fragments that other work leaves.
	Divisible bool `json:"divisible,omitempty"`
}

// Checkpoint is how the job saves its work.
type Checkpoint struct {
	// Seconds that a member needs to save its work after a notice.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=14400
	Seconds int32 `json:"seconds"`
}

// HostList is published in the ConfigMap NAME-hosts of the job's namespace: key "hosts" has a line host:slots for each member that is there
// to stay, key "discover_hosts.sh" is a script that prints them.
type HostList struct {
	// Role whose members are listed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role"`
	// Slots that each member offers: processes, mostly one for each GPU.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=1
	Slots int32 `json:"slots,omitempty"`
	// CooldownSeconds for which a member that failed is left out: twice as long with each failure, up to sixteen times as long.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=300
	CooldownSeconds int32 `json:"cooldownSeconds,omitempty"`
}

// ElasticJobStatus is what Springtide saw and did.
type ElasticJobStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Members say what each role runs.
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MaxItems=16
	Members []JobMemberStatus `json:"members,omitempty"`
	// Desired is the parallelism that Springtide wants, summed over the members.
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired,omitempty"`
	// Active counts the pods of all members that run or start.
	// +kubebuilder:validation:Minimum=0
	Active int32 `json:"active,omitempty"`
	// Gang is how the minimum stands, which works as a whole or not at all; unset where no member has a minimum, or all are divisible.
	Gang *GangStatus `json:"gang,omitempty"`
	// ETA is when a job that waits is expected to begin; unset while it does not wait.
	ETA *ETAStatus `json:"eta,omitempty"`
	// Pause is the pause in force; absent while there is none.
	Pause *PauseStatus `json:"pause,omitempty"`
	// LastRecallTime is when members were taken away last.
	LastRecallTime *metav1.Time `json:"lastRecallTime,omitempty"`
	// Hosts say who is listed in the job's ConfigMap, and who is left out.
	Hosts *HostListStatus `json:"hosts,omitempty"`
	// PodGroup is the PodGroup (scheduling.k8s.io) that was made for the job: pods that the workloads make from now on name it. Empty where the API server
	// serves none, or the job has no minimum that works as a whole.
	// +kubebuilder:validation:MaxLength=253
	PodGroup string `json:"podGroup,omitempty"`
	// Reason is the last decision in one sentence.
	// +kubebuilder:validation:MaxLength=2048
	Reason string `json:"reason,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Conditions: Accepted, AbleToScale, GangWhole, Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ETAStatus is when a job is expected to begin. A time that is unset lies more than a week ahead.
type ETAStatus struct {
	// Earliest and Latest bound the time at which the job begins, on about eight days of ten.
	Earliest *metav1.Time `json:"earliest,omitempty"`
	// Expected is when it begins if the load goes as forecast.
	Expected *metav1.Time `json:"expected,omitempty"`
	// Latest is the other end of the band.
	Latest *metav1.Time `json:"latest,omitempty"`
	// Members are those that the job needs to begin.
	// +kubebuilder:validation:Minimum=0
	Members int32 `json:"members"`
	// Reason is a word for what the job waits for: Tide, BackedOff, Room, StableRoom, QuotaRoom, Quota, Size.
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
	// Why is the same in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	Why string `json:"why,omitempty"`
}

// GangStatus is how the minimum of a job stands.
type GangStatus struct {
	// Phase is Waiting (for room for all of it), Forming (asked for, not running yet), Whole, or BackedOff (it did not run in time).
	// +kubebuilder:validation:Enum=Waiting;Forming;Whole;BackedOff
	Phase string `json:"phase"`
	// Since is when the phase began.
	Since metav1.Time `json:"since"`
	// RetryTime is when a gang that backed off is tried again.
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
	// Tries is how often in a row the gang did not run in time.
	// +kubebuilder:validation:Minimum=0
	Tries int32 `json:"tries,omitempty"`
	// Ran says that all of it ran once. From then on stable members stay while the gang backs off.
	Ran bool `json:"ran,omitempty"`
}

// JobMemberStatus is what one role runs.
type JobMemberStatus struct {
	// Role names the member.
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role"`
	// Desired is the parallelism that Springtide wants.
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`
	// Active counts the pods that run or start.
	// +kubebuilder:validation:Minimum=0
	Active int32 `json:"active"`
	// LastSize is the size that Springtide wrote last, LastScaleTime when; unset before the first.
	// +kubebuilder:validation:Minimum=0
	LastSize int32 `json:"lastSize,omitempty"`
	// LastScaleTime is when it was written.
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
	// Takeovers are the writes of another manager that undid those of Springtide: it wrote another size, or stopped the workload. After the third within
	// an hour the job is not resized until that manager has left it alone for an hour.
	Takeovers *TakeoverStatus `json:"takeovers,omitempty"`
}

// HostListStatus is what was published last.
type HostListStatus struct {
	// ConfigMap has the list.
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`
	// Listed counts the hosts in it.
	// +kubebuilder:validation:Minimum=0
	Listed int32 `json:"listed"`
	// LeftOut are members that failed.
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=256
	LeftOut []LeftOutHost `json:"leftOut,omitempty"`
}

// LeftOutHost is a member that failed and is not listed for a while.
type LeftOutHost struct {
	// Host is its address.
	// +kubebuilder:validation:MaxLength=317
	Host string `json:"host"`
	// Until is when it is listed again.
	Until metav1.Time `json:"until"`
	// Failures since it was last sound for long.
	// +kubebuilder:validation:Minimum=1
	Failures int32 `json:"failures"`
}
