package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time as text: a whole number of days ("28d"), or whole numbers of hours, minutes, seconds and
// milliseconds from
// the largest to the smallest ("1h30m", "250ms").
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=24
type Duration string

// Percent is a share as text with its sign: "70%", "99.95%".
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=8
type Percent string

// Percentile is a percentile as text, without trailing zeros: "50", "99", "99.9", "99.99".
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=5
type Percentile string

// Quantile is a quantile as decimal text: "0.95".
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=6
type Quantile string

// The forms of the notations. They stand in the markers of the fields too, next to the bounds of each field.
var (
	durationForm   = regexp.MustCompile(`^(?:[0-9]{1,4}d|([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?)$`)
	percentForm    = regexp.MustCompile(`^(?:100|[0-9]{1,2}([.][0-9]{1,4})?)%$`)
	percentileForm = regexp.MustCompile(`^[5-9][0-9]([.][0-9]?[1-9])?$`)
	quantileForm   = regexp.MustCompile(`^0[.][0-9]{1,4}$`)
)

// Parse reads the duration.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" || !durationForm.MatchString(string(d)) {
		return 0, fmt.Errorf("%q is no duration: write one such as 250ms, 1h30m or 28d", string(d))
	}
	if days, ok := strings.CutSuffix(string(d), "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(string(d))
}

// DurationOf writes a duration, cut to whole milliseconds: in days where it is a whole number of at least two days.
func DurationOf(d time.Duration) Duration {
	const day = 24 * time.Hour
	switch {
	case d < time.Millisecond:
		return "0s"
	case d >= 2*day && d <= 9999*day && d%day == 0:
		return Duration(strconv.FormatInt(int64(d/day), 10) + "d")
	}
	var b strings.Builder
	for _, u := range [...]struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d -= n * u.length
		}
	}
	return Duration(b.String())
}

// Share reads the percentage as a share (0..1).
func (p Percent) Share() (float64, error) {
	if !percentForm.MatchString(string(p)) {
		return 0, fmt.Errorf("%q is no percentage: write one such as \"70%%\" or \"99.95%%\"", string(p))
	}
	return hundredth(strings.TrimSuffix(string(p), "%"))
}

// PercentOf writes a share (0..1) as a percentage, with four decimals at most.
func PercentOf(share float64) Percent { return Percent(decimals(share) + "%") }

// Quantile reads the percentile as a quantile (0..1).
func (p Percentile) Quantile() (float64, error) {
	if !percentileForm.MatchString(string(p)) {
		return 0, fmt.Errorf("%q is no percentile: write one from \"50\" to \"99.99\", without trailing zeros", string(p))
	}
	return hundredth(string(p))
}

// PercentileOf writes a quantile (0..1) as a percentile.
func PercentileOf(quantile float64) Percentile { return Percentile(decimals(quantile)) }

// Number reads the quantile.
func (q Quantile) Number() (float64, error) {
	if !quantileForm.MatchString(string(q)) {
		return 0, fmt.Errorf("%q is no quantile: write one such as \"0.95\"", string(q))
	}
	return strconv.ParseFloat(string(q), 64)
}

// hundredth reads a decimal number as hundredths. The exponent in the text makes it the nearest float, which a division
// would miss: 99.95 / 100 is not
// 0.9995.
func hundredth(text string) (float64, error) { return strconv.ParseFloat(text+"e-2", 64) }

// decimals is a share in hundredths with at most four decimals and no trailing zeros.
func decimals(share float64) string {
	text := strconv.FormatFloat(share*100, 'f', 4, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
