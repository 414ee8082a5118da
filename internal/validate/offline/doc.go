// Package offline judges files of Springtide's objects without a cluster, by the rules of the API server: the
// definitions are those in deploy/crd, and the code that reads them (structural schemas, defaults, CEL) is the API
// server's own library. Package validate adds the rules that CEL cannot judge.
//
// Findings carry file, line, field and fix.
package offline
