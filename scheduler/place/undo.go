package place

// changeKind says what is to be undone.
type changeKind uint8

const (
	placed  changeKind = iota // pod was put on a row
	removed                   // pod was taken off
	opened                    // row was opened or closed
	given                     // cell changed its side
	spent                     // a claim was used
)

// change is one step back.
type change struct {
	kind  changeKind
	fresh bool // placed: the pod's slot is new
	ref   PodRef
	row   int32
	cell  int32
	side  side // given: the side that had the cell
	was   pod  // removed: the pod
	claim ClaimID
	left  vec // spent: what was left of the claim
}

// note writes a step down while a transaction is open.
func (t *Table) note(c change) {
	if len(t.marks) > 0 {
		t.log = append(t.log, c)
	}
}

// Begin opens a transaction. Transactions nest.
func (t *Table) Begin() { t.marks = append(t.marks, len(t.log)) }

// Commit keeps what was done since the last Begin, within the transaction around it if there is one.
func (t *Table) Commit() {
	t.end()
	if len(t.marks) == 0 {
		t.log = t.log[:0]
	}
}

// Rollback takes back what was done since the last Begin: the table is as it was, to the byte. Shapes that were interned meanwhile stay
// known.
func (t *Table) Rollback() {
	from := t.end()
	marks := t.marks
	t.marks = nil // undoing is not noted
	for i := len(t.log) - 1; i >= from; i-- {
		t.undo(&t.log[i])
		t.log[i] = change{}
	}
	t.log, t.marks = t.log[:from], marks
}

func (t *Table) end() int {
	if len(t.marks) == 0 {
		panic("place: no transaction is open")
	}
	from := t.marks[len(t.marks)-1]
	t.marks = t.marks[:len(t.marks)-1]
	return from
}

// Try does all of do or nothing: what it did is kept if it returns true.
func (t *Table) Try(do func() bool) bool {
	t.Begin()
	if !do() {
		t.Rollback()
		return false
	}
	t.Commit()
	return true
}

// Would asks whether something could be done, and leaves the table as it is.
func (t *Table) Would(do func() bool) bool {
	t.Begin()
	defer t.Rollback()
	return do()
}

func (t *Table) undo(c *change) {
	switch c.kind {
	case placed:
		t.unlink(c.ref)
		t.pods[c.ref] = pod{}
		if c.fresh {
			t.pods = t.pods[:c.ref]
		} else {
			t.spare = append(t.spare, c.ref)
		}
	case removed:
		t.spare = t.spare[:len(t.spare)-1]
		t.pods[c.ref] = c.was
		t.relink(c.ref)
	case opened:
		t.setOpen(c.row, !t.open[c.row])
	case spent:
		t.setAside(c.claim, -1)
		t.claims[c.claim].left = c.left
		t.setAside(c.claim, 1)
	case given:
		t.assignCell(c.cell, c.row, c.side)
	}
}
