package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/springtide/springtide/api/config"
)

// TestEveryKeyReachesTheAgent: a key of the configuration that is validated and then not passed on has no effect, and no message says so.
func TestEveryKeyReachesTheAgent(t *testing.T) {
	// The command's own use.
	own := []string{"Kubeconfig", "Listen", "LogLevel", "CRISocket", "DaemonKinds", "CertDir"}
	said := func(c config.Agent) string { return fmt.Sprintf("%#v", options(c, nil, nil)) }
	plain := said(config.DefaultAgent())
	var walk func(path string, index []int, v reflect.Type)
	walk = func(path string, index []int, v reflect.Type) {
		for i := range v.NumField() {
			f, at := v.Field(i), append(slices.Clone(index), i)
			if slices.Contains(own, f.Name) {
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(path+f.Name+".", at, f.Type)
				continue
			}
			c := config.DefaultAgent()
			change(t, reflect.ValueOf(&c).Elem().FieldByIndex(at))
			if said(c) == plain {
				t.Errorf("%s%s has no effect on the agent", path, f.Name)
			}
		}
	}
	walk("", nil, reflect.TypeFor[config.Agent]())
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(2*v.Int() + 3_000_000_000)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	default:
		t.Fatalf("no other value for %s", v.Kind())
	}
}
