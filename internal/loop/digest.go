package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/springtide/springtide/fleet"
)

// digest identifies the facts of a snapshot by the versions of its objects: equal facts have equal digests. Marshalling all of it would
// cost more than the plan, and so would formatting machines and pods, of which there are many, by reflection.
func digest(s *fleet.Snapshot) string {
	d := digester{h: sha256.New(), buffer: make([]byte, 0, digestChunk+1<<10)}
	d.line("", strconv.FormatInt(s.At.UnixNano(), 10), strconv.FormatInt(s.LeaderEpoch, 10), s.Frozen)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		d.line("n", string(n.ID), string(n.Pool), strconv.FormatBool(n.Ready), string(n.Shut.By), n.Leaving, strconv.FormatBool(n.AgentAlive), n.Share.Version)
		for _, pool := range n.Repels {
			d.line("r", string(pool))
		}
		if m := &n.Marks; *m != (fleet.NodeMarks{}) {
			d.line("m", strconv.FormatBool(m.HolderTaint), strconv.FormatBool(m.OfflineLabel), strconv.FormatBool(m.HomeLabel), strconv.FormatBool(m.KeepNode), string(m.Fence))
		}
	}
	for i := range s.Pods {
		d.line("", string(s.Pods[i].ID), s.Pods[i].Version)
	}
	for i := range s.Services {
		v := &s.Services[i]
		d.line("s", string(v.ID), v.Version, string(v.Mode), strconv.FormatBool(v.Desired.OK), number(v.Desired.Value), v.Blocked.String())
	}
	for i := range s.Loans {
		d.line("l", string(s.Loans[i].ID), s.Loans[i].Version)
	}
	for i := range s.Pools {
		d.line("p", string(s.Pools[i].ID), s.Pools[i].Version)
	}
	for i := range s.Orphans {
		d.line("o", string(s.Orphans[i].ID), s.Orphans[i].Version)
	}
	for i := range s.Jobs {
		d.line("j", string(s.Jobs[i].ID))
		for k := range s.Jobs[i].Members {
			m := &s.Jobs[i].Members[k]
			d.line("r", m.Role, string(m.UID), m.Version, number(m.Desired), number(m.Active), number(m.Ending), number(m.Remaining))
		}
	}
	return d.sum()
}

func number(n int32) string { return strconv.Itoa(int(n)) }

// digestChunk is how many bytes are hashed at a time; a line more may stand before them.
const digestChunk = 1 << 14

// digester hashes lines, some kilobytes at a time.
type digester struct {
	h      hash.Hash
	buffer []byte
}

// line takes in the parts of one object.
func (d *digester) line(parts ...string) {
	for _, p := range parts {
		d.buffer = append(append(d.buffer, p...), ' ')
	}
	d.buffer = append(d.buffer, '\n')
	if len(d.buffer) >= digestChunk {
		d.flush()
	}
}

func (d *digester) flush() {
	d.h.Write(d.buffer)
	d.buffer = d.buffer[:0]
}

func (d *digester) sum() string {
	d.flush()
	return hex.EncodeToString(d.h.Sum(nil)[:16])
}
