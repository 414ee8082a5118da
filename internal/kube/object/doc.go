// Package object has what reading and writing of any object need: its header, the mirror that holds facts of it, the
// form that the API server takes, and the sight of a write in the watches.
package object
