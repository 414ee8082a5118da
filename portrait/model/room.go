package model

// Room is memory that learners work in, one after another: to put weeks of values to work again takes a megabyte each
// time, which is a tenth of the work when it is new. A learner's result is the same in any room. The zero value is
// ready; one goroutine may use it, for one learner at a time.
type Room struct {
	hist     History
	log, raw smoother
}

// blank is a slice of n zeros with some capacity, in the memory of another where that is enough. New memory is an eighth larger: the next time, the
// series that is put to work is longer by what came meanwhile.
func blank[T int32 | float64](s []T, n, capacity int) []T {
	if cap(s) < capacity {
		return make([]T, n, capacity+capacity/8)
	}
	s = s[:n]
	clear(s)
	return s
}
