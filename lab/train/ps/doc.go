// Package ps trains a linear regression with parameter servers: each server holds a part of the parameters and stays,
// workers fetch them, compute a gradient on a batch of their own and send it back, and come and go as they like.
// Nothing is lost when a worker leaves between two of its steps, and all that it needs to come back is the servers'
// addresses.
//
// Server and workers speak JSON over HTTP. It is a trainer to learn from and to test with, not a fast one.
package ps
