package promql

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// identities are series that each pod has once, and the labels that name one.
var identities = []struct {
	metric   string
	matchers []string
	by       []string
}{
	{"kube_pod_owner", []string{`owner_is_controller!="false"`}, []string{"namespace", "pod", "owner_kind", "owner_name"}},
	{"kube_pod_status_ready", []string{`condition="true"`}, []string{"namespace", "pod"}},
	{"container_cpu_usage_seconds_total", []string{`container!=""`, `container!="POD"`}, []string{"namespace", "pod", "container", "cpu"}},
	{"kube_replicaset_owner", []string{`owner_is_controller!="false"`}, []string{"namespace", "replicaset", "owner_kind", "owner_name"}},
}

const (
	// doubledExamples is how many objects with several series are looked at for each metric, doubledValues how many values of a label are named.
	doubledExamples, doubledValues = 5, 10
)

// ofTheTarget are labels that a scrape adds, or that name one object or one life of it: they differ in every healthy source.
var ofTheTarget = []string{"job", "instance", "endpoint", "service", "metrics_path", "node", "host", "hostname", "prometheus", "container", "pod", "namespace", "replicaset",
	"uid", "id", "image", "name", "container_id", "owner_kind", "owner_name", "owner_is_controller", "exported_job", "exported_instance", model.MetricNameLabel}

// doubled is a label under which one pod has several series.
type doubled struct {
	label string
	// copies is set where the series are of one and the same pod.
	copies bool
	// known is set where the pods' own UIDs say which of both it is, and not the label's name.
	known  bool
	values []string
	// of is an object of which it was seen, own the one value of this cluster's pods where they show it.
	of  string
	own []string
}

// clusters looks for labels under which one pod has several series, and for pods of other clusters that count as this one's.
func (x *examination) clusters(services []fleet.Service) {
	found := map[string]*doubled{}
	for _, id := range identities {
		metric := scope{}.sel(id.metric, id.matchers...)
		for _, s := range x.ask(fmt.Sprintf("topk(%d, count by (%s) (%s) > 1)", doubledExamples, strings.Join(id.by, ", "), metric)) {
			matchers := slices.Clone(id.matchers)
			for _, l := range id.by {
				matchers = append(matchers, l+"="+strconv.Quote(string(s.Metric[model.LabelName(l)])))
			}
			name := string(s.Metric["namespace"] + "/" + s.Metric["pod"] + s.Metric["replicaset"])
			for _, d := range tellApart(x.ask(scope{}.sel(id.metric, matchers...))) {
				if before := found[d.label]; before == nil || d.known && !before.known {
					d.of = name
					found[d.label] = &d
				}
			}
		}
	}
	x.strangers(services, found)
	for _, label := range slices.Sorted(maps.Keys(found)) {
		x.reportDoubled(found[label])
	}
}

// podUID finds the pod's UID in the name of a control group.
var podUID = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)

// tellApart names the labels that the series of one object differ by.
func tellApart(series model.Vector) []doubled {
	uids, values := map[string]map[string]bool{}, map[string]map[string]bool{} // by label and value, and by label
	names := map[string]bool{}
	for _, s := range series {
		for l := range s.Metric {
			names[string(l)] = true
		}
	}
	var out []doubled
	for _, l := range slices.Sorted(maps.Keys(names)) {
		if slices.Contains(ofTheTarget, l) {
			continue
		}
		clear(uids)
		values[l] = map[string]bool{}
		for _, s := range series {
			v := string(s.Metric[model.LabelName(l)])
			values[l][v] = true
			uid := string(s.Metric["uid"])
			if m := podUID.FindStringSubmatch(string(s.Metric["id"])); uid == "" && m != nil {
				uid = m[1]
			}
			if uid != "" {
				if uids[uid] == nil {
					uids[uid] = map[string]bool{}
				}
				uids[uid][v] = true
			}
		}
		if len(values[l]) < 2 {
			continue
		}
		d := doubled{label: l, known: len(uids) > 0, values: slices.Sorted(maps.Keys(values[l])), copies: strings.Contains(l, "replica")}
		if d.known {
			d.copies = false
			for _, under := range uids {
				d.copies = d.copies || len(under) > 1
			}
		}
		out = append(out, d)
	}
	return out
}

// strangers looks for pods that the source counts as a service's and that this cluster does not have: their series differ from those of the services' own pods
// by a label. It learns the value of this cluster's own pods, too.
func (x *examination) strangers(services []fleet.Service, found map[string]*doubled) {
	if len(services) == 0 {
		return
	}
	targets, own := map[workload]bool{}, map[fleet.Name]bool{}
	for i := range services {
		targets[targetOf(&services[i])] = true
		for j := range services[i].Pods {
			own[services[i].Pods[j].Name] = true
		}
	}
	sc, strange := scopeOf(services), map[fleet.Name]workload{}
	for _, s := range x.ask(ownerExpr(sc)) {
		if w := workloadOf(s.Metric); targets[w] && !own[podOf(s.Metric)] {
			strange[podOf(s.Metric)] = w
		}
	}
	type seen map[string]map[string]bool // values by label
	ours, theirs := seen{}, seen{}
	add := func(to seen, m model.Metric) {
		for l, v := range m {
			if to[string(l)] == nil {
				to[string(l)] = map[string]bool{}
			}
			to[string(l)][string(v)] = true
		}
	}
	byPod := map[fleet.Name][]model.Metric{}
	for _, s := range x.ask(sc.sel("kube_pod_owner", `owner_is_controller!="false"`)) {
		byPod[podOf(s.Metric)] = append(byPod[podOf(s.Metric)], s.Metric)
	}
	var of workload
	for pod, metrics := range byPod {
		switch w, other := strange[pod]; {
		case own[pod] && len(metrics) == 1: // a pod that is doubled itself does not say which of the series is its own
			add(ours, metrics[0])
		case other:
			of = w
			for _, m := range metrics {
				add(theirs, m)
			}
		}
	}
	if len(ours) == 0 {
		return
	}
	valuesOf := func(l string) []string { // a label that is not there has the empty value
		if len(ours[l]) == 0 {
			return []string{""}
		}
		return slices.Sorted(maps.Keys(ours[l]))
	}
	for l, values := range theirs {
		if slices.Contains(ofTheTarget, l) || slices.ContainsFunc(valuesOf(l), func(v string) bool { return values[v] }) {
			continue
		}
		if found[l] == nil || !found[l].known {
			all := slices.Concat(valuesOf(l), slices.Sorted(maps.Keys(values)))
			slices.Sort(all)
			found[l] = &doubled{label: l, known: true, values: all, of: of.namespace + "/" + of.name}
		}
	}
	for l, d := range found {
		if values := valuesOf(l); len(values) == 1 {
			d.own = values
		}
	}
}

// reportDoubled makes a finding of a label.
func (x *examination) reportDoubled(d *doubled) {
	for _, s := range x.ask(fmt.Sprintf("count by (%s) (kube_pod_owner)", d.label)) {
		if v := string(s.Metric[model.LabelName(d.label)]); v != "" && !slices.Contains(d.values, v) {
			d.values = append(d.values, v)
		}
	}
	values := make([]string, 0, len(d.values))
	for _, v := range d.values {
		values = append(values, strconv.Quote(v))
	}
	if n := len(values); n > doubledValues {
		values = append(values[:doubledValues], fmt.Sprintf("%d more", n-doubledValues))
	}
	list := strings.Join(values, ", ")
	if !d.copies {
		value, which := "VALUE", "# of this cluster, one of "+list
		if len(d.own) > 0 {
			value, which = d.own[0], "# that of this cluster's pods"
		}
		x.add(FindingProblem, "choose this cluster's series", fmt.Sprintf(configClusters, d.label, value, which),
			"the source holds several clusters under the label %s (%s), and all of them count as this one: %s has series of each", d.label, list, d.of)
		return
	}
	if slices.Contains(strings.Split(scrapers, ", "), d.label) || slices.Contains(x.h.own.replicas, d.label) {
		x.add(FindingFine, "", "", "the source holds copies of each series under the label %s (%s): they count once", d.label, list)
		return
	}
	x.add(FindingProblem, "name the label of copies, or deduplicate in the source", fmt.Sprintf(configCopies, d.label),
		"the source holds copies of each series under the label %s (%s), and requests count once for each: %s has series of each", d.label, list, d.of)
}

// matched looks whether the matchers of this cluster match anything. It reports false where they do not, and all further questions are idle.
func (x *examination) matched() bool {
	own := x.h.own
	if len(own.matchers) == 0 {
		return true
	}
	for _, metric := range []string{"kube_pod_owner", "container_cpu_usage_seconds_total"} {
		if x.count("count("+metric+")") > 0 {
			x.add(FindingFine, "", "", "series with %s are read", own)
			return true
		}
	}
	for _, m := range own.matchers {
		for _, metric := range []string{"kube_pod_owner", "container_cpu_usage_seconds_total"} {
			v, err := x.h.anyCluster(x.ctx, "values of "+m.Name, fmt.Sprintf("count by (%s) (%s)", m.Name, metric), x.now)
			if err != nil || len(v) == 0 {
				continue
			}
			var values []string
			for _, s := range v {
				values = append(values, strconv.Quote(string(s.Metric[model.LabelName(m.Name)])))
			}
			slices.Sort(values)
			x.add(FindingProblem, "correct the matcher, or leave it out where the label is added later, as external labels are", fmt.Sprintf(configClusters, m.Name, "VALUE", "# one of "+firstFew(values)),
				"no series has %s; the label %s has the values %s", own, m.Name, firstFew(values))
			return false
		}
	}
	return true
}

// recordedElsewhere looks for recorded series that do not say which cluster they are of.
func (x *examination) recordedElsewhere() {
	if len(x.h.own.matchers) == 0 || x.count("count("+recordedOwner+")") > 0 {
		return
	}
	v, err := x.h.anyCluster(x.ctx, "recorded series", "count("+recordedOwner+")", x.now)
	if err != nil || len(v) == 0 {
		return
	}
	x.add(FindingAdvice, "load rules that keep clusters apart", fmt.Sprintf(configClusterRules, x.h.own.matchers[0]), "none of %.0f series %s has %s: the rules merge clusters, and are not used", float64(v[0].Value), recordedOwner, x.h.own)
}
