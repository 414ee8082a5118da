// Package leadership is what this process leads by, and the stamps by which objects of others show who led when they
// were written.
package leadership
