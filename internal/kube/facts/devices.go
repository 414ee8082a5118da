package facts

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The kinds of DRA that Devices reads.
var (
	DeviceClasses  = draKind("deviceclasses")
	ResourceSlices = draKind("resourceslices")
	ResourceClaims = draKind("resourceclaims")
	ClaimTemplates = draKind("resourceclaimtemplates")
)

func draKind(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: resource}
}

// Drivers and classes of GPUs are known by their names, as all makers choose them: gpu.nvidia.com, gpu.amd.com, gpu.intel.com.
const gpuPrefix = "gpu."

// wholeGPU are the values of a device's attribute "type" that stand for a whole GPU. A driver without the attribute lists nothing else.
var wholeGPU = []string{"", "gpu", "amdgpu"}

// ImplicitPrefix begins the name of the extended resource that stands for any class.
const ImplicitPrefix = "deviceclass.resource.kubernetes.io/"

// deviceID names a device.
type deviceID struct{ driver, pool, device string }

// DeviceClass is a class as Devices needs it.
type DeviceClass struct {
	// Resource is the extended resource that it stands for; empty for none.
	Resource string
	gpu      bool
	text     string // all of its selectors
}

// DeviceClassOf reads a class. It is one of GPUs by its name, or by that of its extended resource.
func DeviceClassOf(u *unstructured.Unstructured) *DeviceClass {
	c := &DeviceClass{}
	c.Resource, _, _ = unstructured.NestedString(u.Object, "spec", "extendedResourceName")
	c.gpu = strings.HasPrefix(u.GetName(), gpuPrefix) || strings.HasSuffix(c.Resource, GPUSuffix)
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "selectors")
	for _, s := range list {
		if m, ok := s.(map[string]any); ok {
			e, _, _ := unstructured.NestedString(m, "cel", "expression")
			c.text += e + "\n"
		}
	}
	return c
}

// selects reports whether the selectors name a driver.
func (c *DeviceClass) selects(driver string) bool {
	return strings.Contains(c.text, `"`+driver+`"`) || strings.Contains(c.text, "'"+driver+"'")
}

// DeviceSlice is what a ResourceSlice says of whole GPUs.
type DeviceSlice struct {
	node       string // empty where they are not one node's
	driver     string
	pool       string
	generation int64
	gpus       []string
}

// DeviceSliceOf reads a slice.
func DeviceSliceOf(u *unstructured.Unstructured) *DeviceSlice {
	s := &DeviceSlice{}
	s.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	s.driver, _, _ = unstructured.NestedString(u.Object, "spec", "driver")
	s.pool, _, _ = unstructured.NestedString(u.Object, "spec", "pool", "name")
	s.generation, _, _ = unstructured.NestedInt64(u.Object, "spec", "pool", "generation")
	if !strings.HasPrefix(s.driver, gpuPrefix) {
		return s
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "devices")
	for _, d := range list {
		m, _ := d.(map[string]any)
		name, _, _ := unstructured.NestedString(m, "name")
		kind, _, _ := unstructured.NestedString(m, "attributes", "type", "string")
		if many, _, _ := unstructured.NestedBool(m, "allowMultipleAllocations"); !many && slices.Contains(wholeGPU, kind) {
			s.gpus = append(s.gpus, name)
		}
	}
	return s
}

// DeviceClaim is a ResourceClaim, or the claims that a template makes.
type DeviceClaim struct {
	namespace string
	// pod is whose it is; empty for a claim that pods share.
	pod types.UID
	// forResource: it stands for extended resources, which count in the requests of its pod already.
	forResource bool
	asks        map[string]int64 // devices by class, where the claim says how many
	allocated   bool
	holds       []deviceID
}

// DeviceClaimOf reads a claim.
func DeviceClaimOf(u *unstructured.Unstructured) *DeviceClaim {
	c := &DeviceClaim{namespace: u.GetNamespace(), forResource: u.GetAnnotations()["resource.kubernetes.io/extended-resource-claim"] == "true"}
	if owner := metav1.GetControllerOf(u); owner != nil && owner.Kind == "Pod" {
		c.pod = owner.UID
	}
	c.asks = asksOf(u, "spec", "devices", "requests")
	var list []any
	list, c.allocated, _ = unstructured.NestedSlice(u.Object, "status", "allocation", "devices", "results")
	for _, r := range list {
		m, _ := r.(map[string]any)
		if admin, _, _ := unstructured.NestedBool(m, "adminAccess"); admin {
			continue
		}
		var id deviceID
		id.driver, _, _ = unstructured.NestedString(m, "driver")
		id.pool, _, _ = unstructured.NestedString(m, "pool")
		id.device, _, _ = unstructured.NestedString(m, "device")
		c.holds = append(c.holds, id)
	}
	return c
}

// ClaimTemplateOf reads what each claim of a template asks for.
func ClaimTemplateOf(u *unstructured.Unstructured) *DeviceClaim {
	return &DeviceClaim{namespace: u.GetNamespace(), asks: asksOf(u, "spec", "spec", "devices", "requests")}
}

// asksOf counts the devices that requests name exactly. Alternatives, and all of a node, count once they are allocated.
func asksOf(u *unstructured.Unstructured, fields ...string) map[string]int64 {
	list, _, _ := unstructured.NestedSlice(u.Object, fields...)
	out := map[string]int64{}
	for _, r := range list {
		m, _ := r.(map[string]any)
		class, ok, _ := unstructured.NestedString(m, "exactly", "deviceClassName")
		admin, _, _ := unstructured.NestedBool(m, "exactly", "adminAccess")
		mode, _, _ := unstructured.NestedString(m, "exactly", "allocationMode")
		if !ok || admin || mode == "All" {
			continue
		}
		n, _, _ := unstructured.NestedInt64(m, "exactly", "count")
		out[class] += max(n, 1)
	}
	return out
}

// podOf is a pod by its namespace and UID: a tenant can write any UID into a claim of its own.
type podOf struct {
	namespace string
	uid       types.UID
}

// Devices counts the GPUs that DRA gives out: those that a node has, and those that pods ask for or hold. A claim of a
// pod's own counts with the pod. Devices of a shared claim are not free on the node any more.
//
// Only devices of one node count. A driver that lists GPUs of no one node is left to upstream's plugins, with its classes.
type Devices struct {
	classes map[string]*DeviceClass
	slices  map[string]*DeviceSlice
	claims  map[string]*DeviceClaim
	byNode  map[string]map[string]bool // names of slices
	byPod   map[podOf]map[string]bool  // names of claims
	gpus    map[deviceID]int           // slices that list each GPU
	shared  map[deviceID]int           // shared claims that hold each
	near    map[string]int             // slices with GPUs of one node, by driver
	far     map[string]int             // of no one node
}

// NewDevices makes it.
func NewDevices() *Devices {
	return &Devices{classes: map[string]*DeviceClass{}, slices: map[string]*DeviceSlice{}, claims: map[string]*DeviceClaim{}, byNode: map[string]map[string]bool{},
		byPod: map[podOf]map[string]bool{}, gpus: map[deviceID]int{}, shared: map[deviceID]int{}, near: map[string]int{}, far: map[string]int{}}
}

// SetClass takes a class over, or with nil its end.
func (d *Devices) SetClass(name string, c *DeviceClass) {
	if delete(d.classes, name); c != nil {
		d.classes[name] = c
	}
}

// SetSlice takes a slice over, or with nil its end, and returns the nodes of which it said something, or says it now.
func (d *Devices) SetSlice(name string, s *DeviceSlice) (nodes []string) {
	d.enter(name, d.slices[name], -1)
	d.enter(name, s, +1)
	for _, x := range []*DeviceSlice{d.slices[name], s} {
		if x != nil && x.node != "" && len(x.gpus) > 0 {
			nodes = append(nodes, x.node)
		}
	}
	if delete(d.slices, name); s != nil {
		d.slices[name] = s
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// enter counts what a slice lists, or with -1 takes it out.
func (d *Devices) enter(name string, s *DeviceSlice, by int) {
	if s == nil || len(s.gpus) == 0 {
		return
	}
	for _, g := range s.gpus {
		add(d.gpus, deviceID{s.driver, s.pool, g}, by)
	}
	if s.node == "" {
		add(d.far, s.driver, by)
		return
	}
	add(d.near, s.driver, by)
	enlist(d.byNode, s.node, name, by > 0)
}

// SetClaim takes a claim over, or with nil its end. It returns the pods and the nodes for which something may have changed.
func (d *Devices) SetClaim(name string, c *DeviceClaim) (pods []types.UID, nodes []string) {
	before := d.claims[name]
	if before != nil {
		enlist(d.byPod, podOf{before.namespace, before.pod}, name, false)
		d.hold(before, -1)
	}
	if delete(d.claims, name); c != nil {
		d.claims[name] = c
		enlist(d.byPod, podOf{c.namespace, c.pod}, name, true)
		d.hold(c, +1)
	}
	for _, x := range []*DeviceClaim{before, c} {
		switch {
		case x == nil:
		case x.pod != "":
			pods = append(pods, x.pod)
		default:
			for _, id := range x.holds {
				for _, s := range d.slices {
					if s.driver == id.driver && s.pool == id.pool && s.node != "" {
						nodes = append(nodes, s.node)
					}
				}
			}
		}
	}
	slices.Sort(pods)
	slices.Sort(nodes)
	return slices.Compact(pods), slices.Compact(nodes)
}

func (d *Devices) hold(c *DeviceClaim, by int) {
	if c.pod == "" {
		for _, id := range c.holds {
			add(d.shared, id, by)
		}
	}
}

func add[K comparable](m map[K]int, k K, by int) {
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}

func enlist[K comparable](m map[K]map[string]bool, k K, name string, in bool) {
	if in {
		if m[k] == nil {
			m[k] = map[string]bool{}
		}
		m[k][name] = true
	} else if delete(m[k], name); len(m[k]) == 0 {
		delete(m, k)
	}
}

// knows reports whether the GPUs of a driver are counted.
func (d *Devices) knows(driver string) bool { return d.near[driver] > 0 && d.far[driver] == 0 }

// Counts reports whether the devices of a class count as GPUs: it is one of GPUs, and its selectors name a driver whose GPUs are counted.
func (d *Devices) Counts(class string) bool {
	c := d.classes[class]
	if c == nil || !c.gpu {
		return false
	}
	for driver := range d.near {
		if c.selects(driver) && d.knows(driver) {
			return true
		}
	}
	return false
}

// CountsResource reports whether an extended resource stands for such a class.
func (d *Devices) CountsResource(name string) bool {
	if class, ok := strings.CutPrefix(name, ImplicitPrefix); ok {
		return d.Counts(class)
	}
	for class, c := range d.classes {
		if c.Resource == name && d.Counts(class) {
			return true
		}
	}
	return false
}

// OnNode counts the GPUs of a node, but for those that shared claims hold. Of a pool only the newest generation counts.
func (d *Devices) OnNode(node string) (n int64) {
	type poolOf struct{ driver, pool string }
	newest := map[poolOf]int64{}
	for name := range d.byNode[node] {
		s := d.slices[name]
		newest[poolOf{s.driver, s.pool}] = max(newest[poolOf{s.driver, s.pool}], s.generation)
	}
	for name := range d.byNode[node] {
		s := d.slices[name]
		if !d.knows(s.driver) || s.generation < newest[poolOf{s.driver, s.pool}] {
			continue
		}
		for _, g := range s.gpus {
			if d.shared[deviceID{s.driver, s.pool, g}] == 0 {
				n++
			}
		}
	}
	return n
}

// OfPod counts the GPUs that a pod's own claims hold, or ask for while they are not allocated.
func (d *Devices) OfPod(namespace string, uid types.UID) (n int64) {
	if uid == "" {
		return 0
	}
	for name := range d.byPod[podOf{namespace, uid}] {
		if c := d.claims[name]; !c.forResource {
			n += d.OfClaim(c)
		}
	}
	return n
}

// OfClaim counts the GPUs of one claim.
func (d *Devices) OfClaim(c *DeviceClaim) (n int64) {
	if c.allocated {
		for _, id := range c.holds {
			if d.gpus[id] > 0 && d.knows(id.driver) {
				n++
			}
		}
		return n
	}
	for class, count := range c.asks {
		if d.Counts(class) {
			n += count
		}
	}
	return n
}
