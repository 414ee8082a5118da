// Package convert turns objects of our API into values of package fleet, with every default, and amounts and times
// back.
package convert
