// Package watch runs the judge as a process: it lists and watches the API server, reads its audit log, asks Prometheus
// whether it answers and the world for the truth, and uses the lab's clock, which waits for it in each step. It passes
// its observations to package judge, which decides.
//
// Like the judge it imports nothing of the product: kinds are read by the fields that the documentation names.
package watch
