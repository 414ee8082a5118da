package store

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
)

// TestFormsAreComplete fails when a field is added that the stored forms would silently lose.
func TestFormsAreComplete(t *testing.T) {
	if n, m := reflect.TypeFor[forecast.Tide]().NumField(), reflect.TypeFor[tideForm]().NumField(); n != m {
		t.Errorf("forecast.Tide has %d fields, its stored form %d: store the new ones in tideForm", n, m)
	}
	if n, m := reflect.TypeFor[hpa.Decision]().NumField(), reflect.TypeFor[decisionForm]().Len(); n != m {
		t.Errorf("hpa.Decision has %d fields, its stored form %d: store the new ones in decisionForm", n, m)
	}
}

func TestPack(t *testing.T) {
	for _, n := range []int{0, 1, compressFrom - 1, compressFrom, 1 << 20} {
		in := bytes.Repeat([]byte("tide "), n/5+1)[:n]
		packed, err := pack(in)
		if err != nil {
			t.Fatal(err)
		}
		if n >= compressFrom && len(packed) > n/10 {
			t.Errorf("%d bytes became %d", n, len(packed))
		}
		if out, err := unpack(packed); err != nil || !bytes.Equal(in, out) {
			t.Errorf("%d bytes came back as %d, %v", n, len(out), err)
		}
	}
	if _, err := unpack([]byte{0x1f, 0x8b, 0, 0}); err == nil {
		t.Error("a broken body was unpacked")
	}
}

func TestCollector(t *testing.T) {
	s := open(t, "sqlite://"+t.TempDir()+"/c.db", Options{})
	appendAll(t, s, cycle(1))
	err := testutil.CollectAndCompare(s.Collector(), strings.NewReader(`
# HELP springtide_store_dropped_records_total Journal records given up because the store was down for too long.
# TYPE springtide_store_dropped_records_total counter
springtide_store_dropped_records_total 0
# HELP springtide_store_set_aside_total Damaged files of the embedded store that were set aside.
# TYPE springtide_store_set_aside_total counter
springtide_store_set_aside_total 0
# HELP springtide_store_up 1 while the store takes what it is given.
# TYPE springtide_store_up gauge
springtide_store_up 1
# HELP springtide_store_waiting_records Journal records held in memory until the store is back.
# TYPE springtide_store_waiting_records gauge
springtide_store_waiting_records 0
`))
	if err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(s.Collector()); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
