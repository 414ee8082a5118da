package view

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "list", "services", "services -A", "services -o wide", "services -n bank", "services cart", "services crat", "services -l team=shop", "services -A --sort-by desired",
		"services --sort-by .spec.replicas.max", "services --sort-by desird", "slo", "slo -A --sort-by budget",
		"slo -o wide", "slo -n bank", "pools", "pools -o wide", "jobs -A", "jobs -n ml -o wide", "festivals", "nodes",
		"nodes -o wide", "nodes node-17", "nodes node-71", "nodes -o json", "quotas", "quotas -o wide", "loans",
		"loans -o wide", "loans -o yaml")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewServicesCommand, NewBudgetsCommand, NewPoolsCommand, NewQuotasCommand, NewLoansCommand,
		NewJobsCommand, NewNodesCommand, NewFestivalsCommand)
}
