package rules

import (
	"testing"
)

func TestRequirements(t *testing.T) {
	l := LabelsOf(map[string]string{"disk": "ssd", "cores": "64", "zone": "z1"})
	for _, c := range []struct {
		r    Requirement
		want bool
	}{
		{Requirement{"disk", In, []string{"hdd", "ssd"}}, true},
		{Requirement{"disk", In, nil}, false},
		{Requirement{"disk", NotIn, []string{"ssd"}}, false},
		{Requirement{"gone", NotIn, []string{"ssd"}}, true},
		{Requirement{"disk", Exists, nil}, true},
		{Requirement{"gone", Exists, nil}, false},
		{Requirement{"gone", DoesNotExist, nil}, true},
		{Requirement{"cores", Gt, []string{"63"}}, true},
		{Requirement{"cores", Gt, []string{"64"}}, false},
		{Requirement{"cores", Lt, []string{"65"}}, true},
		{Requirement{"disk", Lt, []string{"65"}}, false},
		{Requirement{"cores", Gt, []string{"x"}}, false},
		{Requirement{"gone", Gt, []string{"1"}}, false},
	} {
		if got := c.r.Matches(l); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}

func TestSelectors(t *testing.T) {
	l := LabelsOf(map[string]string{"disk": "ssd"})
	ssd := Term{Labels: []Requirement{{"disk", In, []string{"ssd"}}}}
	named := Term{Names: []Requirement{{"metadata.name", In, []string{"a"}}}}
	for name, c := range map[string]struct {
		s    Selector
		want bool
	}{
		"nothing asked":             {Selector{}, true},
		"a label":                   {Selector{Labels: Labels{{"disk", "ssd"}}}, true},
		"another value":             {Selector{Labels: Labels{{"disk", "hdd"}}}, false},
		"no term":                   {Selector{Required: true}, false},
		"an empty term":             {Selector{Required: true, Terms: []Term{{}}}, false},
		"one of two":                {Selector{Required: true, Terms: []Term{{}, ssd}}, true},
		"by name":                   {Selector{Required: true, Terms: []Term{named}}, true},
		"by another name":           {Selector{Required: true, Terms: []Term{{Names: []Requirement{{"metadata.name", In, []string{"b"}}}}}}, false},
		"by any but another name":   {Selector{Required: true, Terms: []Term{{Names: []Requirement{{"metadata.name", NotIn, []string{"b"}}}}}}, true},
		"a label and a term":        {Selector{Labels: Labels{{"disk", "hdd"}}, Required: true, Terms: []Term{ssd}}, false},
		"an operator without sense": {Selector{Required: true, Terms: []Term{{Names: []Requirement{{"metadata.name", Exists, nil}}}}}, false},
	} {
		if got := c.s.Matches("a", l); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w := (&Weighted{Weight: 1}); !w.Matches("a", l) {
		t.Error("an empty preference is met nowhere")
	}
}

func TestTaints(t *testing.T) {
	no := Taint{Key: "k", Value: "v", Effect: NoSchedule}
	for name, c := range map[string]struct {
		tolerations []Toleration
		taint       Taint
		want        bool
	}{
		"none":                {nil, no, false},
		"equal":               {[]Toleration{{Key: "k", Value: "v"}}, no, true},
		"another value":       {[]Toleration{{Key: "k", Value: "w"}}, no, false},
		"exists":              {[]Toleration{{Key: "k", Op: Anything}}, no, true},
		"everything":          {[]Toleration{{Op: Anything}}, no, true},
		"another effect":      {[]Toleration{{Key: "k", Op: Anything, Effect: NoExecute}}, no, false},
		"preferred only":      {nil, Taint{Key: "k", Effect: PreferNoSchedule}, true},
		"greater":             {[]Toleration{{Key: "k", Value: "5", Op: NumericGt}}, Taint{Key: "k", Value: "6", Effect: NoSchedule}, true},
		"not greater":         {[]Toleration{{Key: "k", Value: "6", Op: NumericGt}}, Taint{Key: "k", Value: "6", Effect: NoSchedule}, false},
		"less than no number": {[]Toleration{{Key: "k", Value: "6", Op: NumericLt}}, Taint{Key: "k", Value: "x", Effect: NoExecute}, false},
	} {
		if got := Admits(c.tolerations, []Taint{c.taint}, false); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Admits(nil, nil, true) || !Admits([]Toleration{{Key: "node.kubernetes.io/unschedulable", Op: Anything}}, nil, true) {
		t.Error("cordoned machines admit pods that do not tolerate it, or refuse those that do")
	}
	if n := Unwanted([]Toleration{{Key: "a", Op: Anything}}, []Taint{{Key: "a", Effect: PreferNoSchedule}, {Key: "b", Effect: PreferNoSchedule}, no}); n != 1 {
		t.Errorf("%d unwanted taints", n)
	}
}

func TestPorts(t *testing.T) {
	for _, c := range []struct {
		a, b Port
		want bool
	}{
		{Port{Port: 80}, Port{Port: 80}, true},
		{Port{Port: 80}, Port{Port: 81}, false},
		{Port{Port: 80, Protocol: "UDP"}, Port{Port: 80}, false},
		{Port{Port: 80, Protocol: "TCP", IP: "10.0.0.1"}, Port{Port: 80}, true},
		{Port{Port: 80, IP: "10.0.0.1"}, Port{Port: 80, IP: "10.0.0.2"}, false},
		{Port{Port: 80, IP: "0.0.0.0"}, Port{Port: 80, IP: "10.0.0.2"}, true},
		{Port{}, Port{}, false},
	} {
		if c.a.Conflicts(c.b) != c.want || c.b.Conflicts(c.a) != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, !c.want)
		}
	}
}
