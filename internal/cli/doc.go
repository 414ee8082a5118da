// Package cli is the command line of springtide: the root command, the groups of its help, and the reference. Below it are floors. A package imports
// packages of lower floors alone; internal/archtest holds the order.
//
// verbs          act (pause, freeze, recall, node), adopt, backtest, doctor, explain, festival, forecast, initial
// (init), promote, rules, run, simulate, slo,
//
//	               uninstall, upgrade, validate, view (lists), whatif; clitest and chart/charttest for their tests
//	trials         trial (history played through the sizing, for whatif, promote and init)
//	shared steps   examine (questions of doctor and upgrade check), takeover (autoscalers of others), input (series of forecast and backtest)
//	ways           cluster (flags, clients, our objects, writes), files
//	output         screen (tables, pages, progress)
//	words          cell, usage (arguments and exit codes), build, chart, prom, adopt/foreign
//
// A verb is a function from its options to a command. The root gives operators' verbs a way to the cluster that the flags name, and tests give them
// one in memory. A new verb has a package on the floor of the verbs, a line in the root and one in a group of the help. Code that two verbs need moves to
// a lower floor.
package cli
