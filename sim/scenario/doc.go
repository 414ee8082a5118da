// Package scenario reads what a simulation plays: a fleet, services with the CSV files of their traces, offline jobs, tenants and festivals.
//
// [Load] reads a YAML file strictly, and every error names the file, the field and the fix. [Scenario.Build] makes the
// services' loads of their traces and sizes services and fleet by one rule, static provisioning: last week's peak and a
// fifth, by history alone. Values of a trace after the start of the run reach only the load that is played.
package scenario
