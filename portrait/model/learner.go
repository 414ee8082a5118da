package model

import "math"

// Learner is a state at work on its history.
type Learner struct {
	*State
	room *Room
	hist *History
	ends []int
	// log and raw are the smoothings at work, nil while none was found.
	log, raw *smoother
	base     int // index of the first value that the smoothings have seen
	// group is what the kin know, nil while there are none; they speak from origin kinFrom on.
	kin     *Groups
	group   *Group
	window  [][]float64 // the kin's map of the last week to the next two days
	kinFrom int
	// slots are the windows' quantiles of the last origins that were judged.
	slots  []spreadSlot
	sorted [windowsOf][]float64 // room for their values
}

// Open puts the state to work on its newest values, the first of which lies at grid index first. more is the number of values to come. The
// learner works in a room until the next one does; nil is a room of its own.
func (s *State) Open(room *Room, first int64, newest []float64, more int) *Learner {
	if room == nil {
		room = &Room{}
	}
	l := &Learner{State: s, room: room, hist: newHistory(room.hist, first, len(newest)+more, s.Cycle.Short), ends: Horizons(s.Cycle)}
	for _, y := range newest {
		l.hist.push(y, s.Transform.Forward(y))
	}
	room.hist = *l.hist // as it is now: where it grows, it moves out
	l.begin()
	return l
}

// Ask lets kin of the same step speak for targets whose origin has grid index from or a later one: those are not among what the kin have
// learned from. nil changes nothing.
func (l *Learner) Ask(kin *Groups, from int64) {
	if kin == nil || kin.Step != l.Step {
		return
	}
	l.kin, l.kinFrom = kin, int(max(0, from-l.hist.first))
	if l.hist.Len() > 3*l.Cycle.unit() {
		l.measure()
	}
	l.find()
}

// HearsKin reports whether kin have something to say of the series.
func (l *Learner) HearsKin() bool { return l.group != nil }

// find finds the group of the present traits. A series too young to have any is taken for one of the most usual kind.
func (l *Learner) find() {
	l.group, l.window = nil, nil
	if l.kin == nil {
		return
	}
	if !l.Typed {
		if l.group = l.kin.most(); l.group != nil {
			l.window = l.kin.mapOf(l.group.Centre)
		}
		return
	}
	traits := over(l.Traits, l.kin.Width)
	if g := &l.kin.Groups[l.kin.nearest(traits)]; g.speaks() {
		l.group, l.window = g, l.kin.mapOf(traits)
	}
}

// Newest are the raw values that the methods look back at, gaps as NaN, and the grid index of the first. They are what [State.Open] needs.
func (l *Learner) Newest() (first int64, values []float64) {
	from := max(0, l.hist.Len()-l.Cycle.Span())
	return l.hist.first + int64(from), l.hist.raw[from:]
}

// Observe judges what was forecast for the next value and learns from it. NaN is a gap. It reports whether the value was kept: one that
// looks like an outage is set aside as a gap.
func (l *Learner) Observe(y float64) (kept bool) {
	i := l.hist.Len()
	index := l.hist.first + int64(i)
	if l.outage(y) {
		l.push(math.NaN(), math.NaN())
		return false
	}
	if !math.IsNaN(y) {
		l.Seen++
	}
	if young := l.Seen >= 8 && l.Seen&(l.Seen-1) == 0; young || l.Transform.outgrown(y) || mod(index, l.Cycle.unit()) == 0 {
		l.chooseTransform(y)
	}
	x := l.Transform.Forward(y)
	if !math.IsNaN(x) {
		l.judge(i, x, y)
		l.profile(i, x)
	}
	l.push(y, x)
	if mod(index+1, l.Cycle.unit()) == 0 {
		l.review()
	}
	if l.due() {
		l.fit()
	}
	return !math.IsNaN(y)
}

// profile folds value x at index i into the weekly profile.
func (l *Learner) profile(i int, x float64) {
	if c := l.Cycle; c.Long > 0 && i >= c.Short && !math.IsNaN(x) {
		l.Week.learn(l.hist.first+int64(i), c, x-l.hist.lately(c.Long, i), l.Blocks[len(l.Blocks)-1].Miss)
	}
}

// push appends a value to the history and to all that runs along with it.
func (l *Learner) push(y, x float64) {
	l.hist.push(y, x)
	if l.log == nil {
		return
	}
	if mod(l.hist.first+int64(l.hist.Len()), l.Cycle.unit()) == 0 {
		l.begin()
		return
	}
	l.log.push(x)
	l.raw.push(y)
}

// Note takes a value into the history without learning from it: so do samples that were not folded yet correct the level.
func (l *Learner) Note(y float64) {
	if l.outage(y) {
		y = math.NaN()
	}
	l.push(y, l.Transform.Forward(y))
}

// chooseTransform chooses the transform from the newest values and y, and takes it when it differs much from the present one, since every
// change rewrites the history.
func (l *Learner) chooseTransform(y float64) {
	const sample = 256
	n := l.hist.Len()
	span := min(l.Cycle.Span(), n)
	stride := max(1, span/sample)
	values := make([]float64, 0, 2*sample+2)
	for i := n - span; i < n; i++ {
		if mod(l.hist.first+int64(i), stride) == 0 && !math.IsNaN(l.hist.raw[i]) {
			values = append(values, l.hist.raw[i])
		}
	}
	if !math.IsNaN(y) {
		values = append(values, y)
	}
	if len(values) == 0 {
		return
	}
	if next := choose(values); l.Transform.outgrown(y) || !l.Transform.like(next) {
		l.Transform = next
		l.hist.rewrite(next)
		l.begin()
	}
}

// judge scores the blocks whose turn it is on value x (raw y) at index i, and learns from the misses.
func (l *Learner) judge(i int, x, y float64) {
	index := l.hist.first + int64(i)
	every, low := l.every(), 1
	for k, end := range l.ends {
		if mod(index+int64(k), every) == 0 {
			h := drawn(index, low, end)
			if t := i + 1 - h; t >= 2 {
				l.judgeBlock(k, t, h, x, y)
			}
		}
		low = end + 1
	}
}

// judgeBlock asks what was said with t values of the value h steps after the last of them. No forecast is made at a gap; see [Learner.Project].
func (l *Learner) judgeBlock(k, t, h int, x, y float64) {
	b := &l.Blocks[k]
	if math.IsNaN(l.hist.at(t - 1)) {
		return
	}
	o := l.from(t, h)
	memory := l.memory()
	var said [members]float64
	own := l.say(&o, t-1+h, k, &said)
	if !own.season && l.Cycle.Short > 0 {
		// While no season is known all members say the same. Their misses say nothing about the days when one is.
		return
	}
	if news := own.bits() &^ b.Spoke; news != 0 {
		b.Spoke |= news
		b.unlearn()
		if news&kinBits != 0 {
			l.inherit(b, k)
		}
	}
	untempered := said
	b.temper(&said, l.settled())
	f := b.blend(&said)
	level := math.Exp(o.values[lastUnit])
	if b.Scores >= firstWeighing {
		mixed := float64(max(spreadMemory, l.perDay()))
		b.Band.compare(l.Transform, judged{f: f, y: y, level: level, windows: l.windowsAt(t)}, memory, mixed)
	}
	b.Band.Log.add(x-f, memory)
	b.Band.Raw.add((y-l.Transform.Back(f))/level, memory)
	b.Scores++
	b.learnStray(&untempered, own, memory, l.settled())
	b.learn(x, &said, 1/min(b.Scores, memory), l.Scale)
	if n := int(b.Scores); n%weighEvery == 0 || n >= firstWeighing && n < weighEvery && n&(n-1) == 0 {
		b.weigh()
		b.Band.recut()
	}
}

// drawn is the horizon of a block, from low to end, that is judged at a grid index: drawn by the index, so that it does not follow the time
// of day.
func drawn(index int64, low, end int) int { return low + int(scatter(uint64(index))%uint64(end-low+1)) }

// firstWeighing is the number of judged forecasts before the weights move for the first time; a power of two.
const firstWeighing = 8

// scatter spreads a grid index over all 64 bits (splitmix64, Steele, Lea, Flood 2014).
func scatter(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Before is the raw value n steps before the next one, NaN where there is none.
func (l *Learner) Before(n int) float64 {
	if i := len(l.hist.raw) - n; i >= 0 && n > 0 {
		return l.hist.raw[i]
	}
	return math.NaN()
}

// Level is the raw value that the last short period has in the middle (its geometric mean, where the transform is a logarithm), NaN
// where nothing is known of it.
func (l *Learner) Level() float64 {
	return l.Transform.Back(l.hist.lately(l.Cycle.unit(), l.hist.Len()))
}
