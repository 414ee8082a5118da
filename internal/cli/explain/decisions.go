package explain

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/store"
)

// pastAction is one line of the journal about a subject.
type pastAction struct {
	Time    time.Time `json:"time"`
	Cycle   int64     `json:"cycle"`
	Action  string    `json:"action"`
	Outcome string    `json:"outcome,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// shownDecisions is how many lines of the journal explain prints: the newest ones.
const shownDecisions = 15

// journalKinds are the names under which the journal keeps what explain is asked about.
var journalKinds = map[string]string{"ElasticService": store.KindService, "Node": store.KindNode, "Loan": store.KindLoan, "ElasticJob": store.KindJob}

// decisionsOf reads what the journal says of a subject, the newest last.
func decisionsOf(ctx context.Context, m cluster.Memory, kind string, name fleet.Name) ([]pastAction, error) {
	lines, err := m.About(ctx, journalKinds[kind], name.String(), shownDecisions)
	if err != nil {
		return nil, err
	}
	slices.Reverse(lines)
	out := make([]pastAction, len(lines))
	for i, l := range lines {
		out[i] = pastAction{Time: l.At, Cycle: int64(l.Revision), Action: l.Action, Outcome: l.Outcome, Reason: l.Reason, Message: l.Message}
	}
	return out, nil
}

func decisions(p *screen.Page, lines []pastAction) {
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{cell.Stamp(&metav1.Time{Time: l.Time}), cell.Number(l.Cycle), l.Action, cell.OrNone(l.Outcome), cell.OrNone(l.Reason), cell.OrNone(l.Message)}
	}
	p.Table("Decisions", "the journal holds none", []string{"TIME", "CYCLE", "ACTION", "OUTCOME", "REASON", "MESSAGE"}, rows)
}
