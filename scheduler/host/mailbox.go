package host

import "sync"

// mailbox is what informers, binders and callers leave for the one goroutine that owns the scheduler's state. It never blocks them.
type mailbox struct {
	mu     sync.Mutex
	todo   []func()
	signal chan struct{}
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

// post leaves something to do.
func (m *mailbox) post(f func()) {
	m.mu.Lock()
	m.todo = append(m.todo, f)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take hands over all that there is to do.
func (m *mailbox) take(spare []func()) []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.todo
	m.todo = spare[:0]
	return out
}
