// Package slo counts what became of a service's promise. Looks at its levels go in; a good, bad or unknown minute,
// the budget that is left, the quantile of the tide to be in force and the cause of each bad minute come out. It
// knows neither how a level is measured nor how replicas are computed: both are arguments.
package slo
