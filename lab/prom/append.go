package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// staleNaN is the sample that ends a series: queries see it gone at once, not after the lookback of five minutes.
var staleNaN = math.Float64frombits(value.StaleNaN)

// Series is a handle of one series, which spares the search by labels at each sample. One goroutine at a time may use it.
type Series struct {
	labels labels.Labels
	ref    storage.SeriesRef
}

// RefValue is a value of the series behind a handle.
type RefValue struct {
	Ref   *Series
	Value float64
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// store appends to one database.
type store struct{ to storage.Appendable }

// Series makes a handle for the series with these labels, __name__ among them. The series itself comes to be with its first
// sample, and a handle stays good after its series has ended.
func (s *store) Series(ls labels.Labels) *Series { return &Series{labels: ls} }

// Append writes samples of one time by their labels. All are written or, on an error, none.
func (s *store) Append(ctx context.Context, ts time.Time, samples []Sample) error {
	return s.commit(ctx, func(app storage.Appender) error {
		for _, sample := range samples {
			if _, err := app.Append(0, sample.Labels, ts.UnixMilli(), sample.Value); err != nil {
				return refused(sample.Labels, ts, err)
			}
		}
		return nil
	})
}

// AppendBatch writes samples of one time by their handles. All are written or, on an error, none.
func (s *store) AppendBatch(ts time.Time, values []RefValue) error {
	return s.commit(context.Background(), func(app storage.Appender) error {
		for _, v := range values {
			if err := v.Ref.append(app, ts, v.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// Stamped is a value at a time of its own.
type Stamped struct {
	RefValue
	At time.Time
}

// AppendStamped writes samples that bring their times, as cAdvisor's do, on two cores where they are many. All are written or, on an error, none.
// A series stands among them once.
func (s *store) AppendStamped(values []Stamped) error {
	if len(values) < worthHalving {
		return s.commit(context.Background(), func(app storage.Appender) error { return appendStamped(app, values) })
	}
	apps := [2]storage.Appender{s.to.Appender(context.Background()), s.to.Appender(context.Background())}
	halves := [2][]Stamped{values[:len(values)/2], values[len(values)/2:]}
	if err := both(func(i int) error { return appendStamped(apps[i], halves[i]) }); err != nil {
		return errors.Join(err, apps[0].Rollback(), apps[1].Rollback())
	}
	if err := both(func(i int) error { return apps[i].Commit() }); err != nil {
		return fmt.Errorf("commit samples: %w", err)
	}
	return nil
}

// worthHalving is the number of samples from which a second core saves more than it costs.
const worthHalving = 2000

// both does the two halves of a piece of work side by side.
func both(do func(half int) error) error {
	other := make(chan error, 1)
	go func() { other <- do(1) }()
	return errors.Join(do(0), <-other)
}

func appendStamped(app storage.Appender, values []Stamped) error {
	for _, v := range values {
		if err := v.Ref.append(app, v.At, v.Value); err != nil {
			return err
		}
	}
	return nil
}

// End writes stale markers: at ts and later the series are gone, until a new sample brings them back.
func (s *store) End(ts time.Time, series ...*Series) error {
	return s.commit(context.Background(), func(app storage.Appender) error {
		for _, one := range series {
			if err := one.append(app, ts, staleNaN); err != nil {
				return err
			}
		}
		return nil
	})
}

// append adds one sample and remembers where the series is.
func (s *Series) append(app storage.Appender, ts time.Time, v float64) error {
	ref, err := app.Append(s.ref, s.labels, ts.UnixMilli(), v)
	if err != nil {
		return refused(s.labels, ts, err)
	}
	s.ref = ref
	return nil
}

// commit runs write in one transaction.
func (s *store) commit(ctx context.Context, write func(storage.Appender) error) error {
	app := s.to.Appender(ctx)
	if err := write(app); err != nil {
		return errors.Join(err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("commit samples: %w", err)
	}
	return nil
}

// refused names the sample that the database did not take.
func refused(ls labels.Labels, ts time.Time, err error) error {
	return fmt.Errorf("append %s at %s: %w", ls, ts.UTC().Format(time.RFC3339), err)
}
