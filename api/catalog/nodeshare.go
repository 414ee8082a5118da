package catalog

// Types of conditions of a NodeShare: the capabilities that the node agent finds on the machine, or does not.
const (
	CapCPUSets    = "CPUSets"
	CapCPUIdle    = "CPUIdle"
	CapCPUQuota   = "CPUQuota"
	CapMemoryBox  = "MemoryBox"
	CapEvictions  = "Evictions"
	CapReclaim    = "MemoryReclaim"
	CapPSI        = "PressureStall"
	CapIOWeight   = "IOWeight"
	CapIOCost     = "IOCost"
	CapResctrl    = "CacheAndBandwidth"
	CapNetwork    = "NetworkClass"
	CapNRI        = "RuntimeHooks"
	CapState      = "StateKept"
	CapProtection = "MemoryProtection"
	CapOOMOrder   = "OOMOrder"
)

func available(kind, words string) *Verdict { return verdict(Share, kind, yes, "Available", words) }

// Capabilities that the machine has.
var (
	CPUSetsAvailable = available(CapCPUSets, "pods are confined to the cores and cells of their side")
	CPUSetsOfSystemd = CPUSetsAvailable.or("pods are confined to the cores and cells of their side; the cgroup driver " +
		"is systemd: limits of pods and of what is above them that systemd takes back are written again each cycle")
	CPUIdleAvailable    = available(CapCPUIdle, "reclaimed BestEffort pods run when no other does")
	CPUQuotaAvailable   = available(CapCPUQuota, "the quota of reclaimed pods follows what online leaves idle")
	MemoryBoxAvailable  = available(CapMemoryBox, "reclaimed pods run in a memory box")
	EvictionsAvailable  = available(CapEvictions, "reclaimed pods are evicted under pressure")
	ReclaimAvailable    = available(CapReclaim, "page cache of reclaimed pods is taken before any of them is evicted")
	PSIAvailable        = available(CapPSI, "pressure stall information")
	IOWeightAvailable   = available(CapIOWeight, "reclaimed pods have a low weight for I/O")
	IOCostAvailable     = available(CapIOCost, "io.weight is enforced on devices that io.cost.qos enables")
	ResctrlAvailable    = available(CapResctrl, "reclaimed pods have a class of cache and memory bandwidth")
	NetworkAvailable    = available(CapNetwork, "reclaimed pods have a class of network traffic")
	HooksAvailable      = available(CapNRI, "containers are adjusted before they start")
	StateAvailable      = available(CapState, "the last share is on disk")
	ProtectionAvailable = available(CapProtection, "what online pods request is reclaimed last")
	OOMOrderAvailable   = available(CapOOMOrder, "processes of running pods follow a change of the order in which "+
		"reclaimed pods go")
)

// Lack is why a machine does not have a capability; several capabilities may lack for the same reason.
type Lack struct{ row }

var lacks []*Lack

func lack(reason, words string) *Lack {
	l := &Lack{row{reason: reason, words: words}}
	lacks = append(lacks, l)
	return l
}

func (l *Lack) also(words string) *Lack { return lack(l.reason, words) }
func (l *Lack) when(means string) *Lack { l.means = means; return l }
func (l *Lack) do(fix string) *Lack     { l.fix = fix; return l }

// Lacks lists why capabilities lack, in the order of the table.
func Lacks() []*Lack { return append([]*Lack(nil), lacks...) }

// Reasons of capabilities that the machine lacks.
var (
	NoController = lack("NoController", "the kernel or the kubelet offers no %s controller below %s").
			do("let the kubelet manage the controller, or use a kernel that has it")
	NothingProtected = NoController.also("without the memory controller nothing is protected")
	NoFile           = lack("NoFile", "%s has no %s: the kernel is too old or built without it").do("use a newer kernel")
	NoIOCost         = NoFile.also("the kernel has no io.cost: io.weight counts with the bfq scheduler alone")
	NotEnabled       = lack("NotEnabled",
		"no device has io.cost enabled: io.weight counts with the bfq scheduler alone; to "+
			"fix: set ioCostQoS in the agent's configuration")
	NotMounted = lack("NotMounted", "resctrl is not mounted at %s; to fix: mount it on the machine (mount -t resctrl "+
		"resctrl /sys/fs/resctrl), and into the agent's pod by the component deploy/base/agent/resctrl or the chart's "+
		"agent.resctrl")
	NoResctrl    = lack("NoResctrl", "no %s: the CPU has no RDT, or the kernel was built without it")
	NotSupported = lack("NotSupported", "cgroup v2 has no network class; limit reclaimed pods by the CNI's bandwidth "+
		"annotations")
	ReadOnly    = lack("ReadOnly", "cgroups cannot be written: %v; to fix: mount %s read-write into the agent's pod")
	NotKubelets = lack("NotKubelets", "there is no %s, so %s is not the kubelet's directory, and the agent does not know "+
		"whether the kubelet writes cpusets; to fix: set kubeletRoot to the kubelet's root directory and mount it there")
	StateUnreadable = lack("Unreadable", "the state of the kubelet's managers cannot be read: %v; to fix: mount the "+
		"kubelet's directory at %s (kubeletRoot)")
	StateNotUnderstood = StateUnreadable.also("%s: %v").when(
		"the state of the kubelet's managers is not understood: its file, and why")
	KubeletManages = lack("KubeletManages",
		"the kubelet's policy is %s by %s, so it writes cpusets itself; to fix: set "+
			"%s: none in the kubelet's configuration and remove the file")
	KubeletProtects = lack("KubeletProtects", "the kubelet protects memory by its memoryReservationPolicy "+
		"TieredReservation, so the agent leaves memory.min and memory.low alone")
	Disconnected = lack("Disconnected", "the runtime's NRI socket does not answer: containers are adjusted after their "+
		"start; to fix: turn NRI on in the runtime and mount its socket")
	EvictionsOff  = lack("Off", "evictions are off: pressure takes no reclaimed pod")
	HooksOff      = EvictionsOff.also("nri is off: containers are adjusted after their start")
	ProtectionOff = EvictionsOff.also("protectMemory is off: the kernel takes memory of online as of others")
	WriteFailed   = lack("WriteFailed", "%s").when("a file could not be written: which, and why").
			do("mount it read-write into the agent's pod")
	NotVisible = lack("NotVisible", "%s").when("running pods keep the order that they started with: which, and why").
			do("use the component deploy/base/agent/hostpid, or the chart's agent.hostPID")
	EvictionRefused = lack("Refused", "%s refused to evict pod %s: the next pod goes in its place%s")
	Missing         = lack("Missing", "%s").when("the machine answered with an error: which")
)
