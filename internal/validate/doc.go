// Package validate judges what the API server cannot: cron text, time zones, PromQL, circles of parents, two services on one target.
//
// The controller sets Accepted=False with the sentences found here, and `springtide validate` (package offline) prints the same ones, so
// that an operator reads one sentence for one mistake wherever it is met. Everything that CEL can judge stands in the markers of
// api/v1alpha1 and is not judged again.
package validate
