package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/internal/validate/lines"
)

// Input is one file.
type Input struct {
	Name string
	Text []byte
	// Found says that the file was not named, but found below a directory that was: documents of it that are no objects
	// of Kubernetes (values of a chart, rules of Prometheus) are left alone, and are problems in a file that was named.
	Found bool
}

// Options says how to read the files.
type Options struct {
	// Namespace is that of objects that name none, as kubectl's -n; "default" when empty.
	Namespace string
	// Known are objects that are there already, in a cluster: they are not judged, and those of the files take their place.
	Known validate.Set
	// NamespaceLabel is the label that names the namespace in the metrics source; "namespace" when empty.
	NamespaceLabel string
}

// Result is what was found.
type Result struct {
	// Objects counts those judged, Foreign those of other groups, which are left alone.
	Objects, Foreign int
	// Findings in the order of the inputs and lines.
	Findings []Finding
	// Pending reports that more rules are asked once the findings are fixed.
	Pending bool
}

// object is one object of a file.
type object struct {
	doc   *document
	value map[string]any
	node  *yamlv3.Node
	kind  *Definition
	title string
}

// line is the line of the file on which a field stands.
func (o *object) line(field string) int { return o.doc.first + lines.Of(o.node, field) - 1 }

// Files judges all objects of the inputs, each alone and then together. An error means that the definitions in this binary are broken.
func Files(inputs []Input, o Options) (*Result, error) {
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	j := &judge{definitions: definitions, options: o, seen: map[string]string{}, order: map[string]int{}}
	j.options.Namespace = cmp.Or(o.Namespace, "default")
	j.options.NamespaceLabel = cmp.Or(o.NamespaceLabel, validate.DefaultNamespaceLabel)
	for i, in := range inputs {
		j.order[in.Name] = i
		docs, broken := split(in.Name, in.Text)
		j.result.Findings = append(j.result.Findings, broken...)
		if len(docs) == 0 && len(broken) == 0 {
			j.result.Findings = append(j.result.Findings, Finding{File: in.Name, Line: 1,
				Message: "the file holds no object: write one, or delete the file (a template that renders nothing ends like this)"})
		}
		for d := range docs {
			if in.Found && !docs[d].claims() {
				continue
			}
			for _, obj := range docs[d].items() {
				j.judge(&obj)
			}
		}
	}
	j.together()
	slices.SortFunc(j.result.Findings, j.compare)
	return &j.result, nil
}

// compare orders findings as a reader goes through the files. On one line what is said of a field comes before what is said of the whole
// object; the names settle the rest, since the libraries walk maps.
func (j *judge) compare(a, b Finding) int {
	whole := func(f Finding) int {
		if f.Field == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(j.order[a.File], j.order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object),
		cmp.Compare(whole(a), whole(b)), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

type judge struct {
	definitions map[schema.GroupKind]*Definition
	options     Options
	order       map[string]int
	seen        map[string]string // title -> where it was given first
	quotas      []*v1alpha1.CapacityQuota
	services    []*v1alpha1.ElasticService
	pools       []*v1alpha1.CapacityPool
	objects     map[string]*object // by title
	result      Result
}

func (j *judge) add(o *object, field, message string) {
	j.result.Findings = append(j.result.Findings, Finding{
		File: o.doc.file, Line: o.line(field), Object: o.title, Field: field, Message: message})
}

func (j *judge) judge(o *object) {
	if !j.identify(o) {
		return
	}
	j.result.Objects++
	if !j.texts(o) {
		j.result.Pending = true
		return
	}
	meant := map[string]bool{}
	for _, path := range o.kind.Unknown(o.value) {
		if o.kind.insideList(path) {
			continue // a mapping where a list belongs: its type is what is wrong
		}
		near, text := o.kind.suggest(path)
		meant[near] = true
		j.add(o, path, "unknown field"+text)
	}
	// The API server drops the status of an object that is created.
	delete(o.value, "status")
	errs := o.kind.Create(o.value)
	said, pending := o.kind.sentences(errs, meant)
	j.result.Pending = j.result.Pending || pending
	for _, x := range said {
		j.add(o, x.field, x.text)
	}
	if where, twice := j.seen[o.title]; twice {
		j.add(o, "metadata.name", fmt.Sprintf("given already at %s: delete one of the two", where))
		return
	}
	j.seen[o.title] = fmt.Sprintf("%s:%d", o.doc.file, o.line(""))
	if len(errs) == 0 {
		j.meaning(o)
	}
}

// identify finds the object's kind and names it. It reports false for what is not to be judged further.
func (j *judge) identify(o *object) bool {
	apiVersion, _ := o.value["apiVersion"].(string)
	kind, _ := o.value["kind"].(string)
	if apiVersion == "" || kind == "" {
		j.add(o, "", "apiVersion and kind are required, as in apiVersion: "+v1alpha1.GroupVersion.String()+" and kind: ElasticService")
		return false
	}
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", group
	}
	if group != v1alpha1.GroupVersion.Group {
		if near := lines.Nearest(group, []string{v1alpha1.GroupVersion.Group}); near != "" {
			j.add(o, "apiVersion", fmt.Sprintf("group %q is unknown: did you mean %s?", group, v1alpha1.GroupVersion))
			return false
		}
		j.result.Foreign++
		return false
	}
	d := j.definitions[schema.GroupKind{Group: group, Kind: kind}]
	if d == nil {
		j.add(o, "kind", fmt.Sprintf("there is no kind %q in %s: write one of %s", kind, group, strings.Join(j.kinds(), ", ")))
		return false
	}
	if version != d.Kind.Version {
		j.add(o, "apiVersion", fmt.Sprintf("there is no version %q: write %s", version, v1alpha1.GroupVersion))
		return false
	}
	o.kind = d
	meta, ok := o.value["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		if o.value["metadata"] == nil {
			o.value["metadata"] = meta
		}
	}
	namespace, _ := meta["namespace"].(string)
	if d.Namespaced && namespace == "" {
		namespace = j.options.Namespace
		meta["namespace"] = namespace
	}
	name, _ := meta["name"].(string)
	o.title = kind + " " + name
	if namespace != "" {
		o.title = kind + " " + namespace + "/" + name
	}
	return true
}

// texts judges what must be text in the metadata, and YAML reads as something else without quotes: on, 12, 1e3, yes. The API server refuses such an object
// before it looks at anything else. It reports false where it found some.
func (j *judge) texts(o *object) bool {
	fine := true
	must := func(path []string, value any) {
		if _, ok := value.(string); ok || value == nil {
			return
		}
		fine = false
		if n := nodeAt(o.node, path); n != nil && n.Kind == yamlv3.ScalarNode {
			j.result.Findings = append(j.result.Findings, Finding{File: o.doc.file, Line: o.doc.first + n.Line - 1, Object: o.title, Field: strings.Join(path, "."),
				Message: fmt.Sprintf("YAML reads %s as %s, and it must be text: write %q", n.Value, gotWords(typeWord(value)), n.Value)})
			return
		}
		j.add(o, strings.Join(path, "."), "it must be text, not "+gotWords(typeWord(value)))
	}
	meta, _ := o.value["metadata"].(map[string]any)
	for _, name := range []string{"name", "generateName", "namespace"} {
		must([]string{"metadata", name}, meta[name])
	}
	for _, field := range []string{"labels", "annotations"} {
		of, _ := meta[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(of)) {
			must([]string{"metadata", field, key}, of[key])
		}
	}
	return fine
}

// typeWord is what JSON calls the type of a value.
func typeWord(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// nodeAt is where a value stands in a document; nil where it cannot be found.
func nodeAt(n *yamlv3.Node, path []string) *yamlv3.Node {
	for _, step := range path {
		for n != nil && n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		if n == nil || n.Kind != yamlv3.MappingNode {
			return nil
		}
		var next *yamlv3.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n
}

func (j *judge) kinds() []string {
	var out []string
	for gk := range j.definitions {
		out = append(out, gk.Kind)
	}
	slices.Sort(out)
	return out
}

// meaning judges what CEL cannot, and keeps what is to be judged together with others.
func (j *judge) meaning(o *object) {
	var problems []validate.Problem
	switch o.kind.Kind.Kind {
	case "ElasticService":
		s := &v1alpha1.ElasticService{}
		if j.decode(o, s) {
			problems = validate.ElasticService(s, j.options.NamespaceLabel)
			j.services = append(j.services, s)
		}
	case "CapacityPool":
		p := &v1alpha1.CapacityPool{}
		if j.decode(o, p) {
			problems = validate.CapacityPool(p)
			j.pools = append(j.pools, p)
		}
	case "CapacityQuota":
		q := &v1alpha1.CapacityQuota{}
		if j.decode(o, q) {
			problems = validate.CapacityQuota(q)
			j.quotas = append(j.quotas, q)
		}
	case "ElasticJob":
		e := &v1alpha1.ElasticJob{}
		if j.decode(o, e) {
			problems = validate.ElasticJob(e)
		}
	case "FestivalPlan":
		f := &v1alpha1.FestivalPlan{}
		if j.decode(o, f) {
			problems = validate.FestivalPlan(f)
		}
	}
	for _, p := range problems {
		j.add(o, p.Field, p.Message)
	}
	if j.objects == nil {
		j.objects = map[string]*object{}
	}
	j.objects[o.title] = o
}

func (j *judge) decode(o *object, into any) bool {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.value, into); err != nil {
		j.add(o, "", err.Error())
		return false
	}
	return true
}

// together judges what only shows between objects, those that are in the cluster included.
func (j *judge) together() {
	set := validate.Set{Services: known(j.options.Known.Services, j.services), Pools: known(j.options.Known.Pools, j.pools),
		Quotas: known(j.options.Known.Quotas, j.quotas)}
	for _, found := range []map[validate.Key][]validate.Problem{set.Problems(), set.Advice()} {
		for key, problems := range found {
			o, ok := j.objects[key.String()]
			if !ok {
				continue
			}
			for _, p := range problems {
				j.add(o, p.Field, p.Message)
			}
		}
	}
}

// known joins the objects of the files to those that are in the cluster, which come first and give way to a file's of the same name.
func known[T metav1.Object](there, given []T) []T {
	out := slices.DeleteFunc(slices.Clone(there), func(t T) bool {
		return slices.ContainsFunc(given, func(g T) bool { return g.GetName() == t.GetName() && g.GetNamespace() == t.GetNamespace() })
	})
	return append(out, given...)
}
