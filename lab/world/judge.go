package world

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/springtide/springtide/lab/clock"
	"github.com/springtide/springtide/lab/judge"
	"github.com/springtide/springtide/lab/liar"
	"github.com/springtide/springtide/lab/plane"
)

// The component that judges the run, and the accounts that it knows as the product's.
const (
	judgeCommand     = "judge"
	schedulerAccount = "system:serviceaccount:" + systemNamespace + ":springtide-scheduler"
	agentAccount     = "system:serviceaccount:springtide-agent:springtide-agent"
	leaderLease      = "springtide-controller"
)

// leaderless is how long (by the wall) the world takes a missing leader for what it did to the controllers itself. A lease lasts for 15 s.
const leaderless = 90 * time.Second

// auditPolicy has the API server write down who evicts and deletes pods, and who writes objects of Springtide. Leases and status reports of nodes are
// left out: no judgement uses them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: Metadata
  verbs: [delete, deletecollection]
  resources: [{group: "", resources: [pods]}]
- level: Metadata
  verbs: [create, update, patch, delete]
  resources: [{group: springtide.dev}]
- level: Metadata
  verbs: [update, patch]
  resources: [{group: apps, resources: [deployments, deployments/scale, statefulsets, statefulsets/scale]}]
- level: None
`

// judging is the judge's process, and what the world hands to it.
type judging struct {
	process *controller
	report  string // file
	audit   string // file
	truth   atomic.Pointer[[]byte]
	found   *judge.Report
	used    plane.Usage // of the process, at its end
	// alone is since when (by the wall) no controller leads.
	alone time.Time
}

// prepareJudge has the API server write its audit log. It is called before the control plane starts.
func (w *World) prepareJudge(o *plane.Options) error {
	if !w.options.judged() {
		return nil
	}
	w.judging = &judging{report: filepath.Join(w.dir, "judge.json")}
	for _, arg := range o.ExtraArgs[plane.APIServer] {
		if strings.HasPrefix(arg, "--audit-log-path=") {
			return nil // a test keeps one of its own, of other requests: the judge does without, and its report says which rules had nothing to judge
		}
	}
	w.judging.audit = filepath.Join(w.dir, "audit.log")
	policy := filepath.Join(w.dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	extra := map[string][]string{}
	for name, args := range o.ExtraArgs {
		extra[name] = args
	}
	extra[plane.APIServer] = append(extra[plane.APIServer][:len(extra[plane.APIServer]):len(extra[plane.APIServer])],
		"--audit-policy-file="+policy, "--audit-log-path="+w.judging.audit)
	o.ExtraArgs = extra
	return nil
}

// startJudge runs the judge, a process of its own that reads the API server, its audit log, Prometheus and the truth, and nothing else.
func (w *World) startJudge() error {
	g := w.judging
	if g == nil {
		return nil
	}
	w.tellTruth(w.clock.Now())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve the truth: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(*g.truth.Load()) // a reader that went away needs no answer
	})}
	go func() { _ = server.Serve(listener) }() // ends at Close
	w.onClose(server.Close)
	binary := w.options.Plane.LabBinary
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			return fmt.Errorf("find the own executable: %w", err)
		}
	}
	g.process = &controller{id: clock.Judge, binary: binary, log: filepath.Join(w.dir, "judge.log"), args: []string{
		judgeCommand,
		"--kubeconfig=" + w.plane.Kubeconfig(),
		"--audit=" + g.audit,
		"--clock=" + w.clock.URL(clock.Judge),
		"--truth=http://" + listener.Addr().String(),
		"--prometheus=" + w.sourceURL(),
		"--namespace=" + systemNamespace,
		"--lease=" + leaderLease,
		"--controller=" + controllerAccount,
		"--ours=" + strings.Join([]string{controllerAccount, schedulerAccount, agentAccount}, ","),
		"--report=" + g.report,
	}}
	w.onClose(func() error { return g.process.kill(syscall.SIGTERM) })
	return g.process.start(func(err error) {
		w.clock.Forget(clock.Judge)
		if err != nil {
			select {
			case w.failed <- err:
			default:
			}
		}
	})
}

// sourceURL is where the controllers, and the judge, ask for metrics.
func (w *World) sourceURL() string {
	if w.liar != nil {
		return w.liar.URL()
	}
	return w.prometheusURL
}

// Liar is what stands before Prometheus; nil unless Options.Liar is set.
func (w *World) Liar() *liar.Liar { return w.liar }

// tellTruth publishes what the world knows: the true load of each service in replicas, and what is down on purpose.
func (w *World) tellTruth(now time.Time) {
	if w.judging == nil {
		return
	}
	t := judge.Truth{At: now, Down: w.downNow()}
	for i, rate := range w.fleet.Rates(now.Add(-Step)) { // of the step that passed
		s := w.fleet.Services[i]
		if rate >= 0 { // no load is known outside of the traces
			t.Services = append(t.Services, judge.TrueService{Namespace: s.Name.Namespace, Name: s.Name.Name, Need: rate / s.Capacity})
		}
	}
	data := mustJSON(t)
	w.judging.truth.Store(&data)
}

// downNow names what is down on purpose. Controllers count as down until one of them leads.
func (w *World) downNow() []string {
	var out []string
	for _, o := range w.outages {
		if o.down && !o.over && o.What != Controller {
			out = append(out, string(o.What))
		}
	}
	g := w.judging
	switch {
	case w.clock.Led():
		g.alone = time.Time{}
	case g.alone.IsZero():
		g.alone = time.Now()
	}
	if !g.alone.IsZero() && time.Since(g.alone) < leaderless {
		out = append(out, string(Controller))
	}
	return out
}

// Judge ends the judge and returns what it found; nil where it did not run.
func (w *World) Judge() (*judge.Report, error) {
	g := w.judging
	if g == nil || g.process == nil || g.found != nil {
		return w.judgement(), nil
	}
	g.used, _ = plane.ProcessUsage("judge", g.process.pid())
	if err := g.process.kill(syscall.SIGTERM); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(g.report)
	if err != nil {
		return nil, fmt.Errorf("read the judge's report: %w%s", err, tail(g.process.log))
	}
	found := &judge.Report{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, fmt.Errorf("read the judge's report: %w", err)
	}
	g.found = found
	return found, nil
}

// judgement is what the judge found, once it has ended.
func (w *World) judgement() *judge.Report {
	if w.judging == nil {
		return nil
	}
	return w.judging.found
}
