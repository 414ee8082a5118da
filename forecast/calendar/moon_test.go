package calendar

import (
	"math"
	"testing"
	"time"
)

// This file computes the lunar calendar of China from the sky, by J. Meeus, "Astronomical Algorithms", 2nd ed. 1998:
// chapter 49 for new moons (good to seconds), chapter 25 for the sun's apparent longitude (0.01 degrees: a quarter of
// an hour). The rules are those of GB/T 33661-2017: months begin on the day of the new moon at 120 degrees east, the
// winter solstice lies in the eleventh, and where thirteen months lie between two of those, the first without a
// principal term is a leap month.

func sin(degrees float64) float64 { return math.Sin(math.Mod(degrees, 360) * math.Pi / 180) }

// newMoon is the time of a new moon in Julian ephemeris days, k = 0 that of 6 January 2000.
func newMoon(k float64) float64 {
	t := k / 1236.85
	e := 1 - 0.002516*t - 0.0000074*t*t
	m := 2.5534 + 29.10535670*k - 0.0000014*t*t - 0.00000011*t*t*t
	n := 201.5643 + 385.81693528*k + 0.0107582*t*t + 0.00001238*t*t*t - 0.000000058*t*t*t*t
	f := 160.7108 + 390.67050284*k - 0.0016118*t*t - 0.00000227*t*t*t + 0.000000011*t*t*t*t
	o := 124.7746 - 1.56375588*k + 0.0020672*t*t + 0.00000215*t*t*t
	jde := 2451550.09766 + 29.530588861*k + 0.00015437*t*t - 0.000000150*t*t*t + 0.00000000073*t*t*t*t
	jde += -0.40720*sin(n) + 0.17241*e*sin(m) + 0.01608*sin(2*n) + 0.01039*sin(2*f) + 0.00739*e*sin(n-m) - 0.00514*e*sin(n+m) +
		0.00208*e*e*sin(2*m) - 0.00111*sin(n-2*f) - 0.00057*sin(n+2*f) + 0.00056*e*sin(2*n+m) - 0.00042*sin(3*n) +
		0.00042*e*sin(m+2*f) + 0.00038*e*sin(m-2*f) - 0.00024*e*sin(2*n-m) - 0.00017*sin(o) - 0.00007*sin(n+2*m) +
		0.00004*sin(2*n-2*f) + 0.00004*sin(3*m) + 0.00003*sin(n+m-2*f) + 0.00003*sin(2*n+2*f) - 0.00003*sin(n+m+2*f) +
		0.00003*sin(n-m+2*f) - 0.00002*sin(n-m-2*f) - 0.00002*sin(3*n+m) + 0.00002*sin(4*n)
	for _, a := range [][3]float64{
		{299.77 - 0.009173*t*t, 0.107408, 325}, {251.88, 0.016321, 165}, {251.83, 26.651886, 164}, {349.42, 36.412478, 126},
		{84.66, 18.206239, 110}, {141.74, 53.303771, 62}, {207.14, 2.453732, 60}, {154.84, 7.306860, 56}, {34.52, 27.261239, 47},
		{207.19, 0.121824, 42}, {291.34, 1.844379, 40}, {161.72, 24.198154, 37}, {239.56, 25.513099, 35}, {331.55, 3.592518, 23},
	} {
		jde += a[2] * 1e-6 * sin(a[0]+a[1]*k)
	}
	return jde
}

// sun is the apparent longitude of the sun in degrees.
func sun(jde float64) float64 {
	t := (jde - 2451545) / 36525
	m := 357.52911 + 35999.05029*t - 0.0001537*t*t
	c := (1.914602-0.004817*t-0.000014*t*t)*sin(m) + (0.019993-0.000101*t)*sin(2*m) + 0.000289*sin(3*m)
	l := 280.46646 + 36000.76983*t + 0.0003032*t*t + c - 0.00569 - 0.00478*sin(125.04-1934.136*t)
	return math.Mod(math.Mod(l, 360)+360, 360)
}

// day is the number of the day in Beijing that holds a Julian ephemeris day, and how far (in days) that is from a midnight.
func day(jde float64) (n int, edge float64) {
	t := (jde - 2451545) / 365.25
	// The earth's clock lags behind the ephemeris': F. Espenak, J. Meeus, NASA/TP-2006-214141.
	jd := jde - (62.92+0.32217*t+0.005589*t*t)/86400 + 0.5 + 8.0/24
	return int(math.Floor(jd)), math.Abs(jd - math.Round(jd))
}

// dayOf is the number of the day of a date.
func dayOf(year, month, d int) int {
	return int(time.Date(year, time.Month(month), d, 0, 0, 0, 0, time.UTC).Unix()/86400) + 2440588
}

// term is when the sun reaches a longitude near a date.
func term(degrees float64, year, month, d int) float64 {
	jde := float64(dayOf(year, month, d))
	for range 20 {
		jde += math.Mod(degrees-sun(jde)+540, 360)*365.2422/360 - 180*365.2422/360
	}
	return jde
}

// eleventh is the number of the moon that begins the month with the winter solstice of a year.
func eleventh(year int) int {
	solstice, _ := day(term(270, year, 12, 21))
	k := int(float64(year-2000)*12.3685) + 15
	for n, _ := day(newMoon(float64(k))); n > solstice; n, _ = day(newMoon(float64(k))) {
		k--
	}
	return k
}

// months are the first days of the months 1 to 12 of a year's lunar calendar, leap months left out.
func months(year int) map[int]int {
	out := map[int]int{}
	month := 11
	for _, y := range []int{year, year + 1} {
		first, next := eleventh(y-1), eleventh(y)
		leap := next-first == 13
		for k := first; k < next; k++ {
			begin, _ := day(newMoon(float64(k)))
			end, _ := day(newMoon(float64(k + 1)))
			if k > first {
				if leap && !principal(begin, end) {
					leap = false
					continue
				}
				month++
			}
			if m := (month-1)%12 + 1; month > 12 && month <= 24 {
				out[m] = begin
			}
		}
		month++
	}
	return out
}

// principal reports whether the sun enters a sign, a multiple of 30 degrees, between two days.
func principal(begin, end int) bool {
	// Midnight in Beijing is 8 h before that of the day's number, which itself is half a day before the Julian noon.
	at := func(n int) float64 { return sun(float64(n) - 0.5 - 8.0/24 + 69.0/86400) }
	return math.Floor(at(begin)/30) != math.Floor(at(end)/30)
}

func TestTheSkyOfMeeus(t *testing.T) {
	// Example 49.a: the new moon of February 1977. Example 25.a: the sun on 13 October 1992 at 0h TD, JDE 2448908.5.
	if got := newMoon(-283); math.Abs(got-2443192.65118) > 2e-5 {
		t.Errorf("new moon of February 1977 at JDE %.5f, want 2443192.65118", got)
	}
	if got := sun(2448908.5); math.Abs(got-199.90895) > 2e-5 {
		t.Errorf("the sun on 13 October 1992 at %.5f degrees, want 199.90895", got)
	}
}

func TestTableOfChinaByTheSky(t *testing.T) {
	if n := len(chinaYears); n != 61 || chinaYears[0].year != 2000 || chinaYears[n-1].year != 2060 {
		t.Fatalf("a table of %d years from %d", n, chinaYears[0].year)
	}
	const minutes = 1.0 / 1440
	for _, y := range chinaYears {
		m := months(y.year)
		for _, f := range []struct {
			name                 string
			month, d, inTheTable int
		}{{"Spring Festival", 1, 1, y.spring}, {"Dragon Boat", 5, 5, y.dragon}, {"Double Seventh", 7, 7, y.sevens},
			{"Mid-Autumn", 8, 15, y.midAutumn}, {"Double Ninth", 9, 9, y.nine}} {
			if got, want := dayOf(y.year, f.inTheTable/100, f.inTheTable%100), m[f.month]+f.d-1; got != want {
				t.Errorf("%d: %s at %d, %d days off the moon", y.year, f.name, f.inTheTable, got-want)
			}
		}
		at := term(15, y.year, 4, 5)
		got, edge := day(at)
		if off := dayOf(y.year, y.qingming/100, y.qingming%100) - got; off != 0 && (edge > 15*minutes || off > 1 || off < -1) {
			t.Errorf("%d: Qingming at %d, %d days off the sun, %.0f minutes from midnight", y.year, y.qingming, off, edge/minutes)
		}
	}
}
