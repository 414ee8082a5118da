package portrait

// capacity writes what replicas carry. It follows only where a level was learned, so that a portrait without levels
// stays readable to older releases, and one of theirs to this.
func (w *writer) capacity(p *Portrait) ([]byte, error) {
	if len(p.Capacity) == 0 {
		return w.buf, nil
	}
	w.buf = append(w.buf, capacityMark)
	w.single(p.ReadyLast)
	b, err := p.Capacity.MarshalBinary()
	w.text(string(b))
	return w.buf, err
}

func (r *reader) capacity(p *Portrait) {
	if r.err != nil || len(r.buf) == 0 || r.buf[0] != capacityMark {
		return
	}
	r.take(1)
	p.ReadyLast = r.single()
	if !(p.ReadyLast >= 0) {
		r.fail("%v ready replicas", p.ReadyLast)
	}
	if b := r.text(); r.err == nil {
		r.err = p.Capacity.UnmarshalBinary([]byte(b))
	}
}
