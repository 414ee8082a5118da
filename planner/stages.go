package planner

// The stages of a plan. A stage calls the maker, the maker calls no stage, and no stage calls another. A decision reaches the stages after it by the plan,
// and by what the maker keeps for all.
type (
	// scaler sizes services: by how many replicas, which pods leave, what they request, and floors that are given back.
	scaler struct{ *maker }
	// adopter makes loans again of parcels that their borrower uses although no loan says so.
	adopter struct{ *maker }
	// follower takes each loan that is under way one step further.
	follower struct{ *maker }
	// lender judges each pool: what must come home or is borrowed, what is given back, what is lent.
	lender struct{ *maker }
	// marker brings the marks of pods and machines to what the loans say, and holds room by fillers.
	marker struct{ *maker }
)
