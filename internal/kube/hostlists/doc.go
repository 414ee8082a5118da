// Package hostlists publishes the lists of hosts by which elastic jobs make their rings.
package hostlists
