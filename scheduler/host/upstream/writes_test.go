package upstream

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/scheduler/host"
)

// TestVolumesAreMadeForTheNode: what the plugins write before a binding is for the node of the decision, and succeeds at the first try: a volume that is
// there already, one that is made, and one of each.
func TestVolumesAreMadeForTheNode(t *testing.T) {
	for name, claims := range map[string][]string{"there": {"there"}, "made": {"made"}, "one of each": {"there", "made"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testVolumes(t, claims)
		})
	}
}

func testVolumes(t *testing.T, claims []string) {
	ctx := t.Context()
	wait, gib := storagev1.VolumeBindingWaitForFirstConsumer, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"}}
	client := fake.NewClientset(node, pod,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: driver, VolumeBindingMode: &wait},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "there", AccessModes: modes, Capacity: gib,
			NodeAffinity: on(corev1.LabelHostname, "n1"), PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/v"}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}})
	for _, c := range claims {
		o := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: c, UID: types.UID(c)}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &c, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: gib}}}
		if _, err := client.CoreV1().PersistentVolumeClaims("x").Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	j, err := newJudge(ctx, host.PluginOptions{Client: client, Informers: factory}, devices{})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	j.SetNode(node)
	trial, err := j.Begin(ctx, pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Check(ctx, "n1"); err != nil {
		t.Fatal(err)
	}
	if err := trial.Reserve(ctx, "n1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	begun := false
	go complete(ctx, client, claims)
	if err := trial.PreBind(ctx, "n1", func() { begun = true }); err != nil || !begun {
		t.Errorf("the first try to make them: %v; it began: %t", err, begun)
	}
}

// complete binds claims and their volumes once the plugins have asked for that, as the volume controller and a provisioner do.
func complete(ctx context.Context, client *fake.Clientset, claims []string) {
	for ctx.Err() == nil {
		for _, name := range claims {
			c, err := client.CoreV1().PersistentVolumeClaims("x").Get(ctx, name, metav1.GetOptions{})
			if err != nil || c.Spec.VolumeName != "" {
				continue
			}
			volume := "v"
			if name == "made" {
				if c.Annotations["volume.kubernetes.io/selected-node"] != "n1" {
					continue
				}
				volume = "m"
				_, _ = client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}, metav1.CreateOptions{})
			} else if v, err := client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{}); err != nil || v.Spec.ClaimRef == nil {
				continue
			}
			c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
			_, _ = client.CoreV1().PersistentVolumeClaims("x").Update(ctx, c, metav1.UpdateOptions{})
		}
		time.Sleep(50 * time.Millisecond)
	}
}
