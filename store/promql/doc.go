// Package promql reads the history and the live samples of services from Prometheus, or anything that speaks its HTTP API. It is the one
// place that knows PromQL.
//
// # Queries
//
// Default queries are fleet-wide: each returns one series per pod or workload, so their number is fixed whatever the number of services.
// Where the recording rules of deploy/rules are installed the recorded series are read, else the same expressions over the names that
// real exporters use (cAdvisor, kube-state-metrics, OpenTelemetry); [Rules] renders those rules from the expressions of this package, so
// that both ways cannot drift apart.
//
// Tenants may add queries of their own. Those are confined to their namespace by [Confine], capped in number, and spread over cycles.
//
// # Unknown is not zero
//
// A sample carries the time at which it was scraped, not the time at which it was asked for. A missing value stays
// missing: history has NaN where nothing was measured, and [History.Live] keeps the last sample with its old time
// rather than dropping to zero. Samples are handed out raw, by pod: package signal judges their ages and adds them
// up, called by the loop.
package promql
