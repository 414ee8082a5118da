package forecast_test

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// A portrait goes in; quantile paths of the load come out, the name of the model that spoke, and whether sizing may scale in by them.
func ExampleProject() {
	load := series.New(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), 15*time.Minute, 14*96)
	for i := range load.Values { // requests a second, most at noon
		load.Values[i] = 1000 * (1 - 0.6*math.Cos(2*math.Pi*float64(i)/96))
	}
	p := portrait.Fold(portrait.Portrait{Service: "shop/cart"}, portrait.Batch{Load: load}, portrait.Options{})
	midnight := load.End()
	tide := forecast.Project(p, midnight, forecast.Options{Quantiles: []float64{0.5, 0.9}})
	fmt.Println(tide.Model, "trusted:", tide.Trusted)
	for _, hour := range []int{6, 12} {
		median := tide.At(midnight.Add(time.Duration(hour)*time.Hour), 0.5)
		fmt.Printf("%02d:00 about %.0f\n", hour, 100*math.Round(median/100))
	}
	// Output:
	// seasonal(week+day) trusted: true
	// 06:00 about 1000
	// 12:00 about 1600
}
