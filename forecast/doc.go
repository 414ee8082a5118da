// Package forecast projects a service's portrait into its tide: quantile paths of the load for the hours and days to come.
//
// The methods and how they are weighed are those of package model; this package decides how much of them can be believed. From best to
// worst the chain is: week and day known, day known, only the level known (not trusted), nothing known (an empty tide). Tide.Model names
// the link that spoke, and Tide.Note says why it was not a better one. A tide that is not trusted must never scale anything in.
package forecast
