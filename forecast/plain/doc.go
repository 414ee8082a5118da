// Package plain forecasts plain series: numbers of any kind on a regular grid, which need not be the load of a service. It is what
// `springtide forecast` and backtests call, and its [Forecaster] is the one shape that ours and every peer's methods have.
//
// A forecaster is shown the histories of one origin together, so that it may pool over them, and nothing at or after that origin.
package plain
