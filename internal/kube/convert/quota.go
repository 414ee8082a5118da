package convert

import (
	"strings"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func debtsOf(list []v1alpha1.ParcelDebt) []fleet.ParcelDebt {
	var out []fleet.ParcelDebt
	for _, p := range list {
		kind, model, _ := strings.Cut(p.Class, "/")
		out = append(out, fleet.ParcelDebt{Class: fleet.ParcelClass{Kind: fleet.ParcelKind(kind), GPUModel: model},
			N: p.Owed, Used: p.Used})
	}
	return out
}

// NoticesOf reads what a tenant must give back.
func NoticesOf(list []v1alpha1.QuotaNotice) []fleet.QuotaNotice {
	var out []fleet.QuotaNotice
	for i := range list {
		n := &list[i]
		out = append(out, fleet.QuotaNotice{Since: n.Since.UTC(), Online: amounts(&n.Online), Offline: amounts(&n.Offline),
			OnlineUsed: amounts(&n.OnlineUsed), OfflineUsed: amounts(&n.OfflineUsed), Parcels: debtsOf(n.Parcels)})
	}
	return out
}
