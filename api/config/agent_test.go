package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestAgentDefaults(t *testing.T) {
	c, err := LoadAgent("")
	if err != nil || len(c.Validate()) > 0 {
		t.Fatalf("the defaults: %v, %v", err, c.Validate())
	}
	if !c.Overlap.MemoryBox || !c.Evictions.Enabled {
		t.Error("a plain install has the memory box and evictions on")
	}
	got, err := ParseAgent("agent.yaml", []byte("topology: Read\noverlap: {offer: false}\ninterval: 10s\n"))
	if err != nil || got.Topology != "Read" || got.Overlap.Offer || !got.Overlap.MemoryBox {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAgentSurface: at most 60 flags and keys. The command's own flags are the second number, which its test counts.
func TestAgentSurface(t *testing.T) {
	const flags = 9
	keys := 0
	var count func(reflect.Type)
	count = func(s reflect.Type) {
		for f := range s.Fields() {
			if f.Type.Kind() == reflect.Struct {
				count(f.Type)
				continue
			}
			keys++
		}
	}
	count(reflect.TypeFor[Agent]())
	if keys+flags > 60 {
		t.Errorf("%d keys and %d flags: want at most 60", keys, flags)
	}
}

func TestAgentWrong(t *testing.T) {
	for text, want := range map[string]string{
		"interval: 1ms":                       "interval",
		"topology: Maybe":                     "topology",
		"listen: nowhere":                     "listen",
		"ioMax: [all]":                        "ioMax[0]",
		"ioMax: [254:0 wbps=1 all]":           "ioMax[0]",
		"ioCostQoS: [254:0]":                  "ioCostQoS[0]",
		"ioCostModel: [linear]":               "ioCostModel[0]",
		"ioWeight: 5000":                      "ioWeight",
		"overlap: {floorMilliCPU: 0}":         "overlap.floorMilliCPU",
		"evictions: {tolerance: 0.5}":         "evictions.tolerance",
		"evictions: {overuse: -1}":            "evictions.overuse",
		"evictions: {perMinute: 0, grace: 1}": "agent.yaml:1",
		"unknown: 1":                          "unknown",
		"overlap: {offr: true}":               "did you mean offer?",
		"leaseDuration: 1s":                   "leaseDuration",
		"namespace: Not_One":                  "namespace",
		"logLevel: loud":                      "logLevel",
	} {
		if _, err := ParseAgent("agent.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s in it", text, err, want)
		}
	}
}

func TestSchedulerWrong(t *testing.T) {
	if c, err := LoadScheduler(""); err != nil || len(c.Validate()) > 0 {
		t.Fatalf("the defaults: %v, %v", err, c.Validate())
	}
	for text, want := range map[string]string{
		"names: []":                         "names: it must serve at least one",
		"partitions: 65":                    "partitions: 65 is out of bounds",
		"partition: 1":                      "partition: 1 is no partition: write 0 to 0",
		"leaseNamespace: Not_One":           "leaseNamespace",
		"backoffMost: 100ms":                "backoffMost: 100ms is out of bounds: write 1s to 10m",
		"binders: 0":                        "binders",
		"weights: {online: {pack: 1001}}":   "scheduler.yaml:1: weights.online.pack: 1001 is out of bounds: write 0 to 1000",
		"weights: {offline: {taints: -1}}":  "weights.offline.taints: -1",
		"weights: {online: {keepGPU: 1}}":   "did you mean keepGPUs?",
		"listen: nowhere\nlogLevel: loud\n": "listen",
	} {
		if _, err := ParseScheduler("scheduler.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s in it", text, err, want)
		}
	}
}
