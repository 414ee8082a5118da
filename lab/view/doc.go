// Package view shows the lab's world while it runs: a picture that is drawn again a few times a second on a terminal,
// plain lines of progress anywhere else.
package view
