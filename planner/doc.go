// Package planner composes sizing, quota and reclaim into one [Plan] for one cycle.
//
// [Make] takes every fact in and gives a struct of work out; it does none of it. It looks over a horizon, the tides of
// the coming hours, and acts on the first step only: the next cycle sees what became of it and plans again. Precedence,
// when wishes pull apart: the floor of online and announced deadlines first, then budgets, rates and stays. A freeze
// starts nothing and holds every loan in its phase.
package planner
