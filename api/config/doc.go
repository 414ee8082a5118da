// Package config is the file that configures the controller: `springtide run --config FILE`. It is strict YAML: a field
// that is not known is an error, and errors carry file, line, field and fix. A field that a file leaves out has the
// value of [DefaultController].
package config
