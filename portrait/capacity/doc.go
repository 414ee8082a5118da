// Package capacity learns what one ready replica carries. Minutes of a service come in, each with its load per ready
// replica and the value of one stated level. Out goes the largest load at which the level keeps its limit in the
// objective's share of minutes, with the band around it, or the reason why it is not known.
//
// # Curve
//
// A level counts its minutes in bins of load, 2.5 % wide, and in each bin by value over limit. Counts fade with a
// half-life of a week. The share of minutes that hold falls with load: the fit over bins pools adjacent violators
// (M. Ayer and others, "An empirical distribution function for sampling with incomplete information", Annals of
// Mathematical Statistics 26, 1955). Its edges are Wilson's (L. Brown, T. Cai, A. DasGupta, "Interval estimation for a
// binomial proportion", Statistical Science 16, 2001), the lower one over the best pool of bins from a load upward:
// since more load never helps, minutes at a higher load speak for each lower one.
//
// # Bias
//
// Errors go towards more replicas. The capacity rises by at most 10 % a day, to at most 5 % above a load
// that was shown to hold (10 % where values are far below the limit), and falls at once.
package capacity
