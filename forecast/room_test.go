package forecast

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// A room shows nothing of who worked in it before: services of all lengths and steps are learned and forecast in one room, in turn, as each is
// in a new one.
func TestARoomForgets(t *testing.T) {
	begin := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	load := func(days int, step time.Duration, shift float64) series.Series {
		s := series.New(begin, step, int(time.Duration(days)*24*time.Hour/step))
		for i := range s.Values {
			h := s.Time(i).Sub(begin).Hours()
			s.Values[i] = 50 + shift + 40*math.Sin(h/12*math.Pi+shift) + 5*math.Sin(h*h)
		}
		return s
	}
	loads := []series.Series{load(16, 15*time.Minute, 0), load(3, 5*time.Minute, 1), load(30, time.Hour, 2), load(9, 15*time.Minute, 3)}
	learn := func(room func() *model.Room) (tides []Tide, learned []portrait.Portrait) {
		for _, l := range loads {
			half := l.Len() / 2
			p := portrait.Portrait{Version: portrait.Version, Service: "shop/web"}
			for _, part := range []series.Series{{Start: l.Start, Step: l.Step, Values: l.Values[:half]}, {Start: l.Time(half), Step: l.Step, Values: l.Values[half:]}} {
				p = portrait.Fold(p, portrait.Batch{CPU: part}, portrait.Options{Step: l.Step, Room: room()})
				tides = append(tides, Project(p, part.End(), Options{Horizon: 6 * time.Hour, Room: room()}))
			}
			learned = append(learned, p)
		}
		return tides, learned
	}
	one := &model.Room{}
	tides, learned := learn(func() *model.Room { return one })
	wantTides, wantLearned := learn(func() *model.Room { return nil })
	for i := range tides {
		if !reflect.DeepEqual(tides[i], wantTides[i]) {
			t.Errorf("tide %d (%s) is another one in a used room", i, tides[i].Model)
		}
	}
	for i := range learned {
		got, err := portrait.Marshal(learned[i])
		want, err2 := portrait.Marshal(wantLearned[i])
		if err != nil || err2 != nil || string(got) != string(want) {
			t.Errorf("portrait %d is another one in a used room (%v, %v)", i, err, err2)
		}
	}
}
