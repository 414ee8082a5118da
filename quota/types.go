package quota

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// AheadStep is the length of a step of [Want.Ahead].
const AheadStep = 15 * time.Minute

// Want is one tenant's demand: what its services ask for now and by and by, and what it uses.
type Want struct {
	Tenant fleet.TenantID
	// Now is the demand of its online services, Ahead[k] the most of it between k and k+1 steps from now; as far as it reaches. Used is what its
	// pods request, online and offline.
	Now, Used fleet.Resources
	Ahead     []fleet.Resources
	Offline   fleet.Resources
}

// at is the demand at a step from now on, or the present one where nothing is known of it.
func (w *Want) at(step int) fleet.Resources {
	if step < 0 || step >= len(w.Ahead) {
		return w.Now.Max(w.Used)
	}
	return w.Ahead[step]
}

// Share is what one tenant gets.
type Share struct {
	Tenant fleet.TenantID
	// Entitled is the guarantee in force now (time slices included), Borrowed what it may use beyond it, Lent what others use of it.
	Entitled, Borrowed, Lent fleet.Resources
	// Limit is the most that the tenant's online services may request now.
	Limit fleet.Resources
	Why   string
}

// Short is a demand that the division cannot meet, and from when: now, or at a step to come.
type Short struct {
	Tenant fleet.TenantID
	From   time.Time
	By     fleet.Resources
	Why    string
}

// Division is who may use how much, and who is short when.
type Division struct {
	Shares []Share
	Short  []Short
}
