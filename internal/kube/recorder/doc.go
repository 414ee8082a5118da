// Package recorder records events of the catalogue, each standing trouble once, and names numbers that are not
// believed.
package recorder
