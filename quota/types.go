package quota

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// Want is one tenant's demand: what its services ask for now and at most within the horizon, and what it uses.
type Want struct {
	Tenant fleet.TenantID
	// Now and Ahead are the demand of its online services; Used is what its pods request, online and offline.
	Now, Ahead, Used fleet.Resources
	Offline          fleet.Resources
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

// Short is a demand that the division cannot meet, and from when.
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
