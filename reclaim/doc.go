// Package reclaim decides which parcels change pools: which of them an ebb lets go ([Lendable]), which of them come
// home when the flood is near ([Choose]), which jobs give way for it and when they get their notice.
//
// Both look at facts and forecasts alone and return a list; nothing is moved here.
package reclaim
