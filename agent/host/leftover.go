package host

import (
	"slices"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// dropAtOnce bounds the page cache that one cycle asks back: online is not measured while the kernel drops it.
const dropAtOnce = 512 << 20

// dropCache asks the page cache back that pods which stay on the machine left on cells that wait for memory. When cpuset.mems changes the kernel moves
// what processes have mapped, and nothing else: a file that was read stays there until memory is short. memory.reclaim knows no cells and takes cache
// on all of them alike. So no more is asked for than lies on the cells, and the next cycle asks for what is left. It takes no anonymous memory, since
// the kubelet gives these pods no swap.
func (a *Agent) dropCache(f *Facts, in *shape.Input, reports []v1alpha1.ParcelReport) {
	if f.Share == nil || a.o.DryRun || !a.has(catalog.CapReclaim) {
		return
	}
	budget := fleet.Bytes(dropAtOnce)
	for i := range f.Share.Spec.Parcels {
		p := facts.Parcel(&f.Share.Spec.Parcels[i])
		r := reported(&v1alpha1.NodeShareStatus{Parcels: reports}, &f.Share.Spec.Parcels[i])
		if r == nil || r.Waits != string(share.WaitMemory) {
			continue
		}
		leaves := fleet.PodOffline
		if f.Classes[p.Holder] == fleet.Online {
			leaves = fleet.PodOnline
		}
		for k := range f.Pods { // the input begins with the pods of the facts
			if path := in.Pods[k].Path; path != "" && f.Pods[k].Class == leaves {
				left := fleet.Bytes(0)
				for cell, b := range a.cgroups.CacheByCell(path) {
					if slices.Contains(p.Cells, cell) {
						left += b
					}
				}
				left = min(left, budget)
				budget -= left
				a.askBack(path, left)
			}
		}
	}
}
