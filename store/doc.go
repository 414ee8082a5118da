// Package store keeps what must outlive the process: the journal of cycles, portraits, tides and the history of decisions. It implements
// the loop's Journal and Memory over SQLite (the embedded default) or PostgreSQL; both run the same code and the same tests.
//
// # What an acknowledgement means
//
// A record that [Store.Append] returned nil for is committed. A record it returned an error for is held in memory, up to a bound, and is
// written, in order, with the next append that finds the store alive. Beyond the bound the oldest of those are dropped and counted; what
// was acknowledged never is. Each record is written under a key of its own (leader epoch, revision, time), so that a commit whose answer
// was lost is not written twice.
//
// # What it costs
//
// One transaction per cycle. A cycle that decided nothing new is counted in the row of the idle cycles before it, so an idle day of 5,760
// cycles leaves some hundred rows. Sizings that did not change since they were last journalled are left out of a record, and written in
// full every 15 minutes. Retention is bounded work too: a few hundred rows at a time.
package store
