package promql

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/prometheus/common/model"
)

// FuzzParseVector: the API's own decoding gives the same vector for each answer that the parser accepts.
func FuzzParseVector(f *testing.F) {
	for _, s := range []string{
		noVector, noVector + "\n",
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"a","pod":"b-1"},"value":[1700000000.25,"0.5"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000,"NaN"]},{"metric":{"le":"+Inf"},"value":[1700000000,"+Inf"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"\""},"value":[1,"1"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b\u0063\n"},"value":[1,"1"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial"]}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"1"]},]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parseVector(body)
		if !ok {
			return
		}
		var answer struct {
			Data struct {
				Result model.Vector `json:"result"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Skip("the parser accepts what JSON refuses: a control character in a label, or a number in another form")
		}
		want := answer.Data.Result
		if len(got) != len(want) {
			t.Fatalf("%d samples, want %d", len(got), len(want))
		}
		for i := range got {
			same := got[i].Value == want[i].Value || math.IsNaN(float64(got[i].Value)) && math.IsNaN(float64(want[i].Value))
			if !got[i].Metric.Equal(want[i].Metric) || got[i].Timestamp != want[i].Timestamp || !same {
				t.Fatalf("sample %d: %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// TestParseVectorLeavesTheRest: an answer in another form than the plain one is not read in part.
func TestParseVectorLeavesTheRest(t *testing.T) {
	plain := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"b"},"value":[1,"2"]}]}}`
	if v, ok := parseVector([]byte(plain)); !ok || len(v) != 1 || v[0].Value != 2 || v[0].Metric["pod"] != "b" {
		t.Fatalf("the plain form: %v, %v", v, ok)
	}
	for i := range plain {
		if v, ok := parseVector([]byte(plain[:i])); ok {
			t.Errorf("%q was read as %v", plain[:i], v)
		}
	}
	for _, s := range []string{plain + "x", `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial"]}`} {
		if v, ok := parseVector([]byte(s)); ok {
			t.Errorf("%q was read as %v", s, v)
		}
	}
}
