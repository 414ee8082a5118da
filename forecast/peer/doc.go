// Package peer holds the forecasters of others, written again from the behaviour of their sources, with the parameters
// that they ship: what our own forecasts are measured against, one file each.
//
// Most of them say a single number for each step. Such a point is given at every quantile, as it is shipped; [WithResiduals] makes of it a
// forecast with quantiles, by its own errors on the history before the origin.
package peer
