package copies_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

func TestParseHash(t *testing.T) {
	place, meat := strings.Repeat("a", 16), strings.Repeat("b", 32)
	cases := map[string]struct {
		text string
		want copies.Hash
	}{
		"Update":       {"update:" + place + ":" + meat, copies.Hash{Mode: update, Place: place, Content: meat}},
		"Create":       {"create:" + place + ":" + meat, copies.Hash{Mode: create, Place: place, Content: meat}},
		"Empty":        {"", copies.Hash{}},
		"OtherMode":    {"none:" + place + ":" + meat, copies.Hash{}},
		"NoMode":       {":" + place + ":" + meat, copies.Hash{}},
		"ShortPlace":   {"update:" + place[1:] + ":" + meat, copies.Hash{}},
		"LongPlace":    {"update:" + place + "a:" + meat, copies.Hash{}},
		"ShortContent": {"update:" + place + ":" + meat[1:], copies.Hash{}},
		"TwoParts":     {"update:" + place, copies.Hash{}},
		"FourParts":    {"update:" + place + ":" + meat + ":", copies.Hash{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := copies.ParseHash(tc.text); got != tc.want {
				t.Errorf("ParseHash(%q) = %v, want %v", tc.text, got, tc.want)
			}
		})
	}
}

func TestPlaceOfTellsEveryPartApart(t *testing.T) {
	type where struct {
		slot copies.Slot
		from string
	}
	slot := copies.Slot{Kind: schema.GroupKind{Group: "g", Kind: "k"}, Namespace: "n", Name: "m"}
	places := []where{
		{slot, "f"}, {slot, "f2"}, {slot.At("n2"), "f"},
		{copies.Slot{Kind: slot.Kind, Namespace: "n", Name: "m2"}, "f"},
		{copies.Slot{Kind: schema.GroupKind{Group: "g", Kind: "k2"}, Namespace: "n", Name: "m"}, "f"},
		{copies.Slot{Kind: schema.GroupKind{Group: "g2", Kind: "k"}, Namespace: "n", Name: "m"}, "f"},
		{copies.Slot{Kind: schema.GroupKind{Group: "gk"}, Namespace: "n", Name: "m"}, "f"}, // the border between two parts counts, too
	}
	seen := map[string]where{}
	for _, p := range places {
		place := copies.PlaceOf(p.slot, p.from)
		if len(place) != 16 || strings.Trim(place, "0123456789abcdef") != "" {
			t.Errorf("PlaceOf(%v) = %q, want 16 hex digits", p, place)
		}
		if other, ok := seen[place]; ok {
			t.Errorf("%v and %v are one place", p, other)
		}
		seen[place] = p
	}
	if again := copies.PlaceOf(slot, "f"); seen[again].slot != slot {
		t.Error("the same place has another hash the second time")
	}
	// The copies in existing clusters have this value. If it changed, the operator would take them for a stranger's objects.
	if got, want := copies.PlaceOf(at("a1"), "acme"), placeOfA1; got != want {
		t.Errorf("PlaceOf = %q, want %q: copies that exist would no longer be ours", got, want)
	}
}

const placeOfA1 = "0a8e873782d3bf40"

func TestSlotString(t *testing.T) {
	if got := at("a1").String(); got != "Secret a1/s" {
		t.Errorf("String() = %q", got)
	}
}

func FuzzHash(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		mode := []string{create, update, none, ""}[random.IntN(4)]
		f.Add(mode + ":" + strings.Repeat("0f", 8) + ":" + strings.Repeat("a9", 14+random.IntN(3)))
	}
	f.Add("update:::::::::::::::::::::::::::::::::::::::::::::::::::")
	f.Fuzz(func(t *testing.T, text string) {
		hash := copies.ParseHash(text)
		switch {
		case hash == copies.Hash{}:
		case hash.String() != text:
			t.Errorf("ParseHash(%q).String() = %q", text, hash)
		case hash.Mode != create && hash.Mode != update || len(hash.Place) != 16 || len(hash.Content) != 32:
			t.Errorf("ParseHash(%q) = %#v", text, hash)
		}
		if again := copies.ParseHash(hash.String()); again != hash {
			t.Errorf("%#v becomes %#v by way of text", hash, again)
		}
	})
}
