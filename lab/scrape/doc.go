// Package scrape brings what the lab's exporters say into its Prometheus, as the jobs of a real one do: at an interval, with scrapes that are
// lost, and with the times that cAdvisor sends along.
package scrape
