package facts_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/kube/facts"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const gpuClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel: {expression: "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'"}
`

const gpuSlice = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  nodeName: node-a
  driver: gpu.example.com
  pool: {name: node-a, generation: 2, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}}}
  - {name: gpu-1, attributes: {type: {string: gpu}}}
  - {name: gpu-0-mig-1, attributes: {type: {string: mig}}}
`

const podClaim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: train-gpus
  namespace: ml
  ownerReferences: [{apiVersion: v1, kind: Pod, name: train, uid: pod-1, controller: true}]
spec:
  devices:
    requests:
    - {name: gpus, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 2}}
    - {name: parts, exactly: {deviceClassName: mig.example.com, allocationMode: ExactCount, count: 3}}
`

// TestDevices: whole GPUs of a node count once, in the newest generation of their pool. A pod's claims count with it, as they ask, and then as they are
// allocated; a shared claim takes from the node. A driver of which a GPU belongs to no one node is not counted, nor are its classes.
func TestDevices(t *testing.T) {
	d := facts.NewDevices()
	want := func(what string, node, pod int64, class bool) {
		t.Helper()
		if n, p, c := d.OnNode("node-a"), d.OfPod("ml", "pod-1"), d.CountsResource("example.com/gpu"); n != node || p != pod || c != class {
			t.Errorf("%s: the node has %d GPUs, the pod %d, the class counts %v; want %d, %d, %v", what, n, p, c, node, pod, class)
		}
	}
	d.SetClaim("ml/train-gpus", facts.DeviceClaimOf(parsed(t, podClaim)))
	d.SetClass("gpu.example.com", facts.DeviceClassOf(parsed(t, gpuClass)))
	want("without a slice", 0, 0, false)
	d.SetSlice("a", facts.DeviceSliceOf(parsed(t, gpuSlice)))
	want("with a slice", 2, 2, true)
	for range 20 { // the same slice again, in whichever order its old and new state are read
		d.SetSlice("a", facts.DeviceSliceOf(parsed(t, gpuSlice)))
	}
	want("with the slice again", 2, 2, true)
	if !d.CountsResource(facts.ImplicitPrefix + "gpu.example.com") {
		t.Error("the implicit resource of the class does not count")
	}
	d.SetSlice("old", facts.DeviceSliceOf(parsed(t, strings.NewReplacer("generation: 2", "generation: 1", "gpu-1", "gpu-7").Replace(gpuSlice))))
	want("with a slice of an older generation", 2, 2, true)
	d.SetSlice("old", nil)

	one := strings.NewReplacer("name: train-gpus", "name: some").Replace(podClaim) + `
status:
  allocation:
    devices:
      results:
      - {request: gpus, driver: gpu.example.com, pool: node-a, device: gpu-1}
      - {request: gpus, driver: gpu.example.com, pool: node-a, device: gpu-0, adminAccess: true}
      - {request: parts, driver: gpu.example.com, pool: node-a, device: gpu-0-mig-1}
`
	d.SetClaim("ml/some", facts.DeviceClaimOf(parsed(t, one)))
	want("with an allocated claim", 2, 3, true)
	d.SetClaim("ml/some", facts.DeviceClaimOf(parsed(t, strings.ReplaceAll(one, "namespace: ml", "namespace: ml\n  annotations: {resource.kubernetes.io/extended-resource-claim: 'true'}"))))
	want("with a claim for an extended resource, which is in the pod's requests", 2, 2, true)
	d.SetClaim("evil/some", facts.DeviceClaimOf(parsed(t, strings.ReplaceAll(one, "namespace: ml", "namespace: evil"))))
	want("with a claim of another namespace that names the pod", 2, 2, true)
	_, nodes := d.SetClaim("ml/some", facts.DeviceClaimOf(parsed(t, strings.ReplaceAll(one, "kind: Pod", "kind: Set"))))
	if len(nodes) != 1 || nodes[0] != "node-a" {
		t.Errorf("a shared claim changes the nodes %v", nodes)
	}
	want("with a shared claim", 1, 2, true)
	d.SetClaim("ml/some", nil)
	want("without it", 2, 2, true)

	far := strings.NewReplacer("nodeName: node-a", "allNodes: true", "name: node-a", "name: fabric").Replace(gpuSlice)
	d.SetSlice("far", facts.DeviceSliceOf(parsed(t, far)))
	want("with GPUs of no one node", 0, 0, false)
	d.SetSlice("far", nil)
	want("without them", 2, 2, true)
	d.SetSlice("a", nil)
	want("without the slice", 0, 0, false)
}
