package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ids of whatever letters give distinct names that a cluster would take, the same in any order and company; those of ordinary ids show them.
func TestNamesOfIDs(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []string
		want []string
	}{
		{"one series", []string{""}, []string{"c"}},
		{"ordinary", []string{"Shop A", "shop_b", "cart", "x.y/z"}, []string{"c-shop-a", "c-shop-b", "c-cart", "c-x-y-z"}},
		{"an ordinary dash", []string{"shop – a"}, []string{"c-shop-a"}},
		{"other letters", []string{"订单", "支付", "订单-v2"}, []string{"c-055338a0", "c-73f5066f", "c-v2-3d75d1f3"}},
		{"the same alone", []string{"订单"}, []string{"c-055338a0"}},
		{"accents and bytes", []string{"café", "\xb6\xa9"}, nil},
		{"signs alone", []string{"***", "+"}, nil},
		{"alike but for signs", []string{"A b/1", "A-b 1"}, nil},
		{"and one that is plain", []string{"cart", "Cart", "CART"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []trace
			for _, id := range tt.ids {
				all = append(all, trace{id: id})
			}
			got, unlike := namesOf("c", all)
			if tt.want != nil {
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Error(d)
				}
			}
			for i, n := range got {
				if !objectName.MatchString(n) || slices.Contains(got[:i], n) {
					t.Errorf("%q is called %s beside %s", tt.ids[i], n, got[:i])
				}
				if !unlike[i] && tt.ids[i] != "" && n != "c-"+plainName(tt.ids[i]) {
					t.Errorf("%q is called %s, and nobody is told", tt.ids[i], n)
				}
			}
			if i := slices.Index(tt.ids, "cart"); i >= 0 && got[i] != "c-cart" {
				t.Errorf("cart became %s for its company", got[i])
			}
		})
	}
}

// A note names what a name does not show, and where names are listed; two ids that come to one name are named.
func TestIDsAreNoted(t *testing.T) {
	with := func(rename ...string) *Scenario {
		s := stranger(t, fleetYAML, nil)
		s.Services[1].Trace = "ids.csv"
		text, err := os.ReadFile(filepath.Join(s.dir, "one.csv"))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		out.WriteString("id,ts,value\n")
		for _, id := range rename {
			for row := range strings.Lines(strings.TrimPrefix(string(text), "ts,value\n")) {
				out.WriteString(id + "," + row)
			}
		}
		if err := os.WriteFile(filepath.Join(s.dir, "ids.csv"), []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return s
	}
	b := build(t, with("订单", "cart"))
	if want := `ids.csv has ids that no name can show: online/long-055338a0 is "订单"`; !slices.Contains(b.Notes, want) {
		t.Errorf("notes are %q", b.Notes)
	}
	s := with("订单", "cart")
	s.Surges = []Surge{{Service: "online/订单"}}
	if _, err := s.Build(); err == nil || !strings.HasSuffix(err.Error(), `write one of online/long-055338a0 (id "订单"), online/long-cart, online/one`) {
		t.Errorf("got %v", err)
	}
	s = with("订单", "055338a0")
	want := `two services are called online/long-055338a0: of entry long, id "订单" and of entry long, id "055338a0": name one of them otherwise`
	if _, err := s.Build(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
