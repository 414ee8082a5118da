package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Notice is a worker's view of its pod's checkpoint notice.
type Notice struct {
	// File holds the annotation springtide.dev/notice, through the downward API; Answers is the directory for what the side-car carries on.
	File, Answers string
	// Patience is how long past the deadline an eviction is waited for. A notice that is taken back disappears from the file, but who takes
	// it back may be down.
	Patience time.Duration

	answered NoticeID
}

// NoticeID is one notice: epochs count per loan.
type NoticeID struct {
	Loan  string
	Epoch int64
}

// Stands is the notice that stands; the zero one when the worker may stay: none was given, it was taken back, or no
// eviction came for longer than Patience.
func (n *Notice) Stands(now time.Time) (NoticeID, error) {
	data, err := os.ReadFile(n.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return NoticeID{}, nil
	}
	if err != nil {
		return NoticeID{}, err
	}
	id, deadline, err := ParseNotice(data)
	if err != nil {
		return NoticeID{}, fmt.Errorf("%s: %w", n.File, err)
	}
	if now.Sub(deadline) > n.Patience {
		return NoticeID{}, nil
	}
	return id, nil
}

// ParseNotice reads the text of a notice.
func ParseNotice(text []byte) (NoticeID, time.Time, error) {
	var n struct {
		Loan     string    `json:"loan"`
		Epoch    int64     `json:"epoch"`
		Deadline time.Time `json:"deadline"`
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return NoticeID{}, time.Time{}, fmt.Errorf("read the notice: %w", err)
	}
	if n.Epoch < 1 || n.Deadline.IsZero() {
		return NoticeID{}, time.Time{}, fmt.Errorf("the notice %s lacks its epoch or its deadline", text)
	}
	return NoticeID{n.Loan, n.Epoch}, n.Deadline, nil
}

// Acknowledge says that the work is saved, once for each notice; it reports whether that was news.
func (n *Notice) Acknowledge(id NoticeID) (fresh bool, err error) {
	if id == n.answered {
		return false, nil
	}
	path := filepath.Join(n.Answers, "ack")
	if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(id.Epoch, 10)), 0o644); err != nil {
		return false, fmt.Errorf("acknowledge: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return false, fmt.Errorf("acknowledge: %w", err)
	}
	n.answered = id
	return true, nil
}
