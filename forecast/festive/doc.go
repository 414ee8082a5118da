// Package festive learns what the days of a calendar did to a series, and says what they will do to it.
//
// A day's effect is a logarithm for each hour: of the load of that hour to what an ordinary day of the same weekday would have shown,
// which is the median of such days in the weeks around it. Effects multiply, as tides do.
//
// A holiday comes once a year, so each effect is shrunk: that of one name towards what days of its kind did, that of the kind towards
// nothing, each by how far it stands out of the noise of ordinary days (W. James, C. Stein, "Estimation with quadratic loss", 1961; the
// weights of a random-effects mean: R. DerSimonian, N. Laird, "Meta-analysis in clinical trials", 1986). Where kin were seen on a day of
// that name they take the place of the kind.
//
// Before that, days of a kind are matched with a type of day: holidays may resemble Sundays, working weekends a Wednesday. It is that type
// which carries the shape of a day over to another weekday. The days next to a holiday are learned as well, under names of their own.
//
// Where neither the name nor the kind of a day was ever seen nothing is said.
package festive
