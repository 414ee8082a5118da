package plane

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	nodeready "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"

	"github.com/springtide/springtide/internal/validate/lines"
)

// NodeAnnotation and NodeAnnotationValue mark the nodes that kwok keeps alive; a node without them stays NotReady.
const (
	NodeAnnotation      = "kwok.x-k8s.io/node"
	NodeAnnotationValue = "fake"
)

//go:embed scheduler.yaml
var schedulerConfig []byte

//go:embed springtide-scheduler.yaml
var springtideConfig []byte

// The ports of a plane, as indices into layout.ports.
const (
	portEtcd = iota
	portEtcdPeer
	portAPI
	portControllers
	portScheduler
	portKWOK
	portCount
)

// layout holds what the command lines are made from.
type layout struct {
	lab, kwok string
	dir       string
	ports     []int
	options   Options
}

// staleReads are the gates by which a controller, finding its cache behind its own last write, gives up and tries again
// later. Later is by back-off in wall time, and at most ten a second in all, while the lab's clock waits for the pod; what
// keeps the controller from acting twice without the gates is its bookkeeping of expected pods.
const staleReads = "StaleControllerConsistencyDaemonSet=false,StaleControllerConsistencyJob=false," +
	"StaleControllerConsistencyReplicaSet=false,StaleControllerConsistencyStatefulSet=false"

// terminatingReplicas is the gate by which ReplicaSets and Deployments count the pods that are on their way out: two status writes for each pod
// that goes, and no component of the lab reads the count.
const terminatingReplicas = "DeploymentReplicaSetTerminatingReplicas=false"

// groupAPIs are the versions of Workload, PodGroup and CompositePodGroup that the API server serves; none is on by default.
const groupAPIs = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"

// gate is a setting of a feature gate, and the first version of Kubernetes in which the lab sets it.
type gate struct {
	setting string
	since   uint
}

// gates are those of the API server. A component does not start with a gate that its version does not know, and gates come and go: PodGroups needed
// GangScheduling and WorkloadAwarePreemption before 1.37, and these are gone. Without pods that name a group nothing changes.
var gates = []gate{
	{terminatingReplicas, 33},
	{"GenericWorkload=true", 37},
	{"TopologyAwareWorkloadScheduling=true", 37},
	{"CompositePodGroup=true", 37},
	{"DRAWorkloadResourceClaims=true", 37},
}

// apiServerGates are the gates of the API server when it plays a version, as "1.35"; its own when empty.
func apiServerGates(emulated string) string {
	minor := uint(math.MaxUint)
	if v, err := version.ParseGeneric(emulated); err == nil {
		minor = v.Minor()
	}
	var out []string
	for _, g := range gates {
		if minor >= g.since {
			out = append(out, g.setting)
		}
	}
	return strings.Join(out, ",")
}

// apiServerGC lets the heap of the API server grow to three times its live objects: a fifth of its processor time was collection.
const apiServerGC = "GOGC=200"

// address is host:port of one of the plane's servers.
func (l layout) address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(l.ports[port]))
}

// path is a file in the plane's directory.
func (l layout) path(name string) string { return filepath.Join(l.dir, name) }

// writeConfigs writes the files that the scheduler and kwok are configured by.
func (l layout) writeConfigs() error {
	if err := os.WriteFile(l.path("scheduler.yaml"), schedulerConfig, 0o644); err != nil {
		return fmt.Errorf("write the scheduler's configuration: %w", err)
	}
	if err := os.WriteFile(l.path("gateway.yaml"), []byte(gatewayConfig), 0o644); err != nil {
		return fmt.Errorf("write the gateway's configuration: %w", err)
	}
	if err := os.WriteFile(l.path("springtide-scheduler.yaml"), springtideConfig, 0o644); err != nil {
		return fmt.Errorf("write the bundled scheduler's configuration: %w", err)
	}
	stages := strings.Join([]string{nodeready.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease}, "\n---\n")
	if err := os.WriteFile(l.path("kwok.yaml"), []byte(stages), 0o644); err != nil {
		return fmt.Errorf("write kwok's stages: %w", err)
	}
	return nil
}

// components are the plane's parts in starting order: etcd, the API server, and those that need it.
func (l layout) components(keys *pki) ([]*component, error) {
	client := keys.httpClient()
	part := func(name, url string, args []string) *component {
		c := &component{
			name: name, binary: l.lab, dir: l.dir, log: filepath.Join(l.dir, "logs", name+".log"),
			ready: probe{client: client, url: url},
		}
		if name == KWOK {
			c.binary = l.kwok
		} else {
			c.args = []string{name} // the subcommand of the lab's binary
		}
		if name == APIServer {
			c.env = []string{apiServerGC}
			if m := l.options.APIServerMemory; m != "" {
				c.env = append(c.env, "GOMEMLIMIT="+m)
			}
		}
		c.args = slices.Concat(c.args, args, l.options.ExtraArgs[name])
		return c
	}
	parts := []*component{
		part(Etcd, "http://"+l.address(portEtcd)+"/health", l.etcdArgs()),
		part(APIServer, "https://"+l.address(portAPI)+"/readyz", l.apiServerArgs(keys)),
		part(ControllerManager, "https://"+l.address(portControllers)+"/healthz", l.controllerArgs(keys)),
		l.scheduler(part, keys),
		part(KWOK, "http://"+l.address(portKWOK)+"/healthz", l.kwokArgs(keys)),
	}
	return parts, checkArgs(parts, l.options.ExtraArgs)
}

// checkArgs refuses arguments of a component that does not run: they would have no effect.
func checkArgs(parts []*component, extra map[string][]string) error {
	var running []string
	for _, c := range parts {
		running = append(running, c.name)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(running, name) {
			continue
		}
		if near := lines.Nearest(name, running); near != "" {
			return fmt.Errorf("arguments of %q: the plane has no such component: did you mean %s?", name, near)
		}
		return fmt.Errorf("arguments of %q: the plane runs %s", name, strings.Join(running, ", "))
	}
	return nil
}

// scheduler is the one that places pods.
func (l layout) scheduler(part func(name, url string, args []string) *component, keys *pki) *component {
	if l.options.Scheduler == Springtide {
		return part(Springtide, "http://"+l.address(portScheduler)+"/readyz", []string{
			"--kubeconfig=" + keys.kubeconfig(adminUser),
			"--config=" + l.path("springtide-scheduler.yaml"),
			"--listen=" + l.address(portScheduler),
		})
	}
	return part(Scheduler, "https://"+l.address(portScheduler)+"/readyz", l.schedulerArgs(keys))
}

func (l layout) etcdArgs() []string {
	return []string{
		"--data-dir=" + l.path("etcd"),
		"--listen-client-url=http://" + l.address(portEtcd),
		"--listen-peer-url=http://" + l.address(portEtcdPeer),
	}
}

func (l layout) apiServerArgs(keys *pki) []string {
	return append(append(l.servingArgs(keys, portAPI), l.versionArgs()...),
		"--etcd-servers=http://"+l.address(portEtcd),
		// A day passes in minutes: what etcd keeps of the last five of them would be hours of writes.
		"--etcd-compaction-interval=1m",
		"--advertise-address="+loopback,
		"--client-ca-file="+keys.path("ca.crt"),
		"--token-auth-file="+keys.path(tokensFile),
		// Delegated authentication (the other components' /metrics) wants a front proxy's authority published; no
		// certificate bears the name, so no client can be one.
		"--requestheader-client-ca-file="+keys.path("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		// A real kubelet has the rights of its node alone; see Plane.Node.
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate="+keys.path("kubelet-client.crt"),
		"--kubelet-client-key="+keys.path("kubelet-client.key"),
		"--kubelet-certificate-authority="+keys.path("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file="+l.path("gateway.yaml"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+keys.path("service-account.key"),
		"--service-account-signing-key-file="+keys.path("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		// The reconciler would publish the server's own address as endpoints, and loopback is refused there.
		"--endpoint-reconciler-type=none",
		// It taints new nodes until the node lifecycle controller, which is off, finds them ready.
		"--disable-admission-plugins=TaintNodesByCondition",
		// A replayed day is a burst of hundreds of writes a second from a few clients: there is no flow to protect from another.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=2000",
		"--event-ttl=15m",
		"--profiling=false",
		"--shutdown-delay-duration=0",
		// Open watches would hold a shutdown up for a minute; with this it waits for them for two seconds.
		"--shutdown-send-retry-after=true",
	)
}

// versionArgs say which Kubernetes the API server plays.
func (l layout) versionArgs() []string {
	args := []string{"--feature-gates=" + apiServerGates(l.options.EmulatedVersion)}
	if v := l.options.EmulatedVersion; v != "" {
		return append(args, "--emulated-version="+v)
	}
	return append(args, "--runtime-config="+groupAPIs)
}

// controllerArgs are for the lab's own set of controllers: see cmd/springtide-lab/controllers.go.
func (l layout) controllerArgs(keys *pki) []string {
	args := []string{
		"--kubeconfig=" + keys.kubeconfig(adminUser),
		"--listen-address=" + l.address(portControllers),
		"--tls-cert-file=" + keys.path("server.crt"),
		"--tls-private-key-file=" + keys.path("server.key"),
		"--service-account-private-key-file=" + keys.path("service-account.key"),
		"--root-ca-file=" + keys.path("ca.crt"),
		"--feature-gates=" + staleReads + "," + terminatingReplicas,
	}
	if l.options.EmulatedVersion == "" { // an older version serves no PodGroups that this binary knows
		args = append(args, "--pod-groups")
	}
	return args
}

func (l layout) schedulerArgs(keys *pki) []string {
	args := append(l.servingArgs(keys, portScheduler), l.delegationArgs(keys)...)
	if v := l.options.EmulatedVersion; v != "" {
		args = append(args, "--emulated-version="+v) // else it would wait for kinds that the API server does not serve
	}
	return append(args, "--config="+l.path("scheduler.yaml"))
}

func (l layout) kwokArgs(keys *pki) []string {
	return []string{
		"--kubeconfig=" + keys.kubeconfig(adminUser),
		"--config=" + l.path("kwok.yaml"),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + NodeAnnotation + "=" + NodeAnnotationValue,
		// A lease is renewed after a quarter of its life: hundreds of nodes at the kubelet's 40 s would be dozens of
		// writes a second that no component reads, since the node lifecycle controller is off.
		"--node-lease-duration-seconds=600",
		"--server-address=" + l.address(portKWOK),
	}
}

// servingArgs make a component serve on loopback with the plane's certificate.
func (l layout) servingArgs(keys *pki, port int) []string {
	return []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(l.ports[port]),
		"--tls-cert-file=" + keys.path("server.crt"),
		"--tls-private-key-file=" + keys.path("server.key"),
	}
}

// delegationArgs let a component ask the API server who calls it, so that its /metrics can be read.
func (l layout) delegationArgs(keys *pki) []string {
	return []string{
		"--authentication-kubeconfig=" + keys.kubeconfig(adminUser),
		"--authorization-kubeconfig=" + keys.kubeconfig(adminUser),
	}
}

// awaitServiceAccount waits for the default namespace's service account, without which the API server refuses pods. It
// is the first thing the controller manager does, so it also shows that its controllers run.
func (p *Plane) awaitServiceAccount(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the default service account: %w", err)
	}
	p.progress("the plane is ready")
	return nil
}
