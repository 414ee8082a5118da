// Package scenario reads what a simulation plays: a fleet, services with the CSV files of their traces, offline jobs, tenants and festivals.
//
// [Load] reads a YAML file strictly, and every error names the file, the field and the mend. [Scenario.Build] makes the services' loads of
// their traces and sizes services and fleet by one rule, static provisioning: last week's peak and a fifth, by history alone. What a trace
// holds after the start of the run reaches the load that is played and nothing else.
package scenario
