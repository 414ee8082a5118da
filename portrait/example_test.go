package portrait_test

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// Two weeks of load go in; what kind of service it is, its seasons and its level come out. The portrait is then stored, read back, and folded
// forward by what is newer.
func ExampleFold() {
	load := series.New(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), 15*time.Minute, 14*96)
	for i := range load.Values { // requests a second, most at noon
		load.Values[i] = 1000 * (1 - 0.6*math.Cos(2*math.Pi*float64(i)/96))
	}
	p := portrait.Fold(portrait.Portrait{Service: "shop/cart"}, portrait.Batch{Load: load}, portrait.Options{})
	fmt.Printf("%s, %s, every %s\n", p.Signal, p.Shape.Class, p.Shape.Periods[0].Length)
	fmt.Printf("level %.0f, peak %.0f\n", p.Level, p.Peak)

	stored, err := portrait.Marshal(p)
	if err != nil {
		panic(err)
	}
	read, err := portrait.Unmarshal(stored)
	fmt.Println(read.Service, read.End.Equal(p.End), err)
	// Output:
	// requests, tidal, every 24h0m0s
	// level 1000, peak 1600
	// shop/cart true <nil>
}
