// Package judge knows the promises of Springtide as an operator would write them, and says where they were not kept.
//
// It shares no code with what it judges: it imports nothing of this module, and archtest holds it to that. Its facts are those of an outsider:
// objects of the API server, its audit log, whether Prometheus answers, and what the lab knows of the true load. Facts come in by [Judge.See],
// time by [Judge.Step]; [Judge.Report] is what was found. There is no clock, no goroutine and no I/O here: package watch has those.
//
// Two things keep it honest. A condition that may last for a while is a breach only after its span, and spans stand in the text of each rule.
// A span runs only while the judge sees the cluster and nothing is down on purpose: no duty can be done while the API server is away.
package judge
