// Package prom is a Prometheus inside the lab's process: its own time series database, query engine, rules and HTTP API,
// taken from its module, with the lab's clock in place of the wall clock.
//
// Samples are appended at the virtual time by the part that has them: there is no scrape loop, only Scrape, which does
// one. The history before the first live sample goes through a Backfill, which takes series in any order and at full
// speed. Nothing is written ahead: the database is thrown away with the lab, so it has no log to replay.
package prom
