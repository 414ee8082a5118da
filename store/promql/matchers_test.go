package promql

import "testing"

func TestMatchersOfAHistogram(t *testing.T) {
	for _, v := range []struct {
		list []string
		want string
		ok   bool
	}{
		{nil, "", true},
		{[]string{`route="/cart"`, `code!~"5.."`}, `route="/cart",code!~"5.."`, true},
		{[]string{`route = '/cart'`}, `route="/cart"`, true},
		{[]string{`route="/cart",code="200"`}, "", false},
		{[]string{`route="/cart"} or up{job="x"`}, "", false},
		{[]string{"route"}, "", false},
		{[]string{`namespace="bank"`}, "", false},
		{[]string{`pod=~".*"`}, "", false},
		{[]string{`__name__="up"`}, "", false},
		{[]string{`le="0.1"`}, "", false},
	} {
		got, err := Matchers(v.list)
		if got != v.want || (err == nil) != v.ok {
			t.Errorf("%q gives %q, %v", v.list, got, err)
		}
	}
}
