// Package apitest judges the API of springtide.dev as a user meets it: the definitions by the API server's own rules, and files of good
// and bad objects with the exact sentences that they get.
package apitest
