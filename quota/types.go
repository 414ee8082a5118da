package quota

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Input is everything that one division is made from.
type Input struct {
	Tenants []fleet.Tenant
	Wants   []Want
	// Supply is what the pools' machines hold, less what pods of no tenant use. While no machine is known, guarantees are taken at their
	// word and nothing beyond them is there to share.
	Supply fleet.Known[fleet.Resources]
	// Parcels are the parcels that offline work can have.
	Parcels []ParcelSupply
	At      time.Time
	Open    WindowOpen
	// Ahead are the steps of [Want.Ahead] by their start, the first of them now, each lasting until the next. The last one counts with its
	// start alone.
	Ahead []time.Time
	// Level is the level of the low-priority capacity, on which bursts depend.
	Level Level
	// Memo keeps what is divided ahead for the next division; nil keeps nothing.
	Memo *Memo
}

// WindowOpen reports whether a window is open at a time. Windows are evaluated by the caller's package of schedules, so that cron is
// known in one place.
type WindowOpen func(w fleet.Window, at time.Time) bool

// Want is one tenant's demand: what its services ask for now and by and by, and what it uses.
type Want struct {
	Tenant fleet.TenantID
	// Now is the demand of its online services, Ahead[k] the most of it in the k-th step of [Input.Ahead]; as far as it reaches. Used is
	// what its online pods request.
	Now, Used fleet.Resources
	Ahead     []fleet.Resources
	// Fragments is what is free in holes that none of its waiting pods fits, though they are within what it is
	// guaranteed. It lends so much less: what is free is no room for them, so others must leave some. The steps ahead
	// do not know of it.
	Fragments fleet.Resources
	// Stuck is what these pods ask for. Where the holes are more than it can keep of its own, borrowers have as much less.
	Stuck fleet.Resources
	// Offline is what its offline pods request; OfflineNeed what its jobs cannot do without (their minima), and OfflineWish what they could
	// use at most.
	Offline, OfflineNeed, OfflineWish fleet.Resources
	// Parcels are those that its offline pods are on, and could be on.
	Parcels []ParcelCount
}

// online is the present demand of the tenant's services: what they ask for, and what runs until it is gone.
func (w *Want) online() amount { return amountOf(w.Now.Max(w.Used)).floor() }

// offline is the least and the most that the tenant's offline work wants.
func (w *Want) offline() (need, wish amount) {
	need = amountOf(w.OfflineNeed).floor()
	return need, amountOf(w.OfflineWish.Max(w.Offline)).max(need)
}

// ahead is the online demand of a step ahead; the present one where nothing is known of it.
func (w *Want) ahead(step int) amount {
	if step >= len(w.Ahead) {
		return w.online()
	}
	return amountOf(w.Ahead[step]).floor()
}

// ParcelCount is what a tenant has of one class of parcels: N are those that it is on, More how many it lacks at least for all that its jobs
// could use.
type ParcelCount struct {
	Class   fleet.ParcelClass
	N, More int64
}

// ParcelSupply is how many parcels of one class offline work can have: Firm are those of offline pools, which
// guarantees can depend on, Lent those that are away from online pools, which can be recalled.
type ParcelSupply struct {
	Class      fleet.ParcelClass
	Firm, Lent int64
	// Held are those that some tenant is on, Next to how often one is on a parcel next to another.
	Held, Beside int64
}

// Share is what one tenant gets, itself and those below it where it says nothing else.
type Share struct {
	Tenant fleet.TenantID
	// Guarantee is what it is promised now (time slices included), Entitled what of that can be kept. Own is Entitled without what the
	// tenants below it hold.
	Guarantee, Entitled, Own fleet.Resources
	// Online and Offline are what it wants for itself, Used what its pods request.
	Online, Offline, Used fleet.Resources
	// Borrowed is what it was granted beyond Own, for online services and for offline work; Lent what others were granted of Own.
	Borrowed, BorrowedOffline, Lent fleet.Resources
	// Bound names what keeps its online services from all that they want: a tenant's limit, or that nothing is left.
	// None where they have it.
	Bound reason.Reason
	// Kept is what of Own is not lent since its waiting pods do not fit what is free.
	Kept fleet.Resources
	// Limit is the most that its online services may request now, OfflineLimit the same of its offline work.
	Limit, OfflineLimit fleet.Resources
	// Bursting says that the borrowing limit is lifted by the tenant's burst, BurstSince when the last burst began (one that the low watermark
	// ended counts as begun its full duration before that), and BurstWhy what keeps a tenant that wishes to from bursting.
	Bursting   bool
	BurstSince time.Time
	BurstWhy   reason.Reason
	// OverOnline and OverOffline are what online services and offline work request beyond their limits, now or by
	// Deadline at the latest. OverSince is the time of the last notice; all are zero without one.
	OverOnline, OverOffline fleet.Resources
	OverSince, Deadline     time.Time
	// Owed is what of OverOnline the online services of others wait for. The rest is shown and not forced: online does not scale in below
	// its need for the sake of offline work.
	Owed fleet.Resources
	// Notices are for Owed and OverOffline, oldest first. Due and DueOffline are the parts whose notice is over: they
	// are brought down now, and were due back by DueBy.
	Notices         []fleet.QuotaNotice
	Due, DueOffline fleet.Resources
	DueBy           time.Time
	// Parcels are its shares of each class; what it owes of them has its notices and its deadline with the rest.
	Parcels []ParcelShare
	// Why is the division in one sentence.
	Why reason.Reason
}

// ParcelShare is what a tenant gets of one class of parcels.
type ParcelShare struct {
	Class fleet.ParcelClass
	// Guarantee is what it is promised, Entitled what of it can be kept, Used what it has, Limit the most that it may have now.
	Guarantee, Entitled, Used, Limit int64
	// Over is how many it is on beyond what it may keep while lenders take theirs, Due what of these had its notice: it is left now.
	Over, Due int64
}

// Over is what is requested beyond the limits.
func (s *Share) Over() fleet.Resources { return s.OverOnline.Add(s.OverOffline) }

// Owes reports whether anything is to be given back.
func (s *Share) Owes() bool {
	return !s.Over().IsZero() || slices.ContainsFunc(s.Parcels, func(p ParcelShare) bool { return p.Over > 0 })
}

// HasDue reports whether anything had its notice and is brought down.
func (s *Share) HasDue() bool {
	return !s.Due.IsZero() || !s.DueOffline.IsZero() || slices.ContainsFunc(s.Parcels, func(p ParcelShare) bool { return p.Due > 0 })
}

// Short is a demand that the division cannot meet, from when until when, and by how much at most.
type Short struct {
	Tenant fleet.TenantID
	From   time.Time
	// Until is the first moment at which it is met again; zero where the look ahead ends before. Worst is from when on most is missing, which
	// is what Why is about.
	Until, Worst time.Time
	By           fleet.Resources
	Why          reason.Reason
}

// Oversold is a promise that cannot be kept, from when until when: what is promised and what of it is kept, at worst. For the times see [Short].
type Oversold struct {
	Tenant             fleet.TenantID
	From, Until, Worst time.Time
	Promised, Kept     fleet.Resources
	Why                reason.Reason
}

// Division is who may use how much, and who is short when. All lists are in the order of tenant ids; of one tenant, in that of time.
type Division struct {
	Shares   []Share
	Short    []Short
	Oversold []Oversold
	Level    Level
}

// Share finds a tenant's share, or nil.
func (d *Division) Share(id fleet.TenantID) *Share {
	for i := range d.Shares {
		if d.Shares[i].Tenant == id {
			return &d.Shares[i]
		}
	}
	return nil
}

// Level is how much capacity low-priority work has at its disposal, as a share of the whole supply, and its watermarks.
type Level struct {
	// Pool is the offline pool that the watermarks are set on.
	Pool      fleet.PoolID
	Share     fleet.Known[float64]
	Low, High float64
}
