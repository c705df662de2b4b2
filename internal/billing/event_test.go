package billing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
)

// Because of the IDs, an event that is sent twice counts once, even when the exporter's version has changed in between. So the IDs must
// never change.
func TestIDsStay(t *testing.T) {
	first := set(1, "4711", nine).Sealed()
	for what, c := range map[string]struct{ got, want string }{
		"content_hash": {first.ContentHash, "04230faebfac2f5aa885c6197d45371e335cd148b71616a01f554b17bc8c7509"},
		"event_id":     {first.ID, "adfafd7fd86c23b7967ee27d53ac12d3a81c4b4acc328a60e387588ee9f965d7"},
		"of an END":    {end(1, "t1", nine).Sealed().ID, "3f14ba87021e518503868bc197978a83a68053ebe2359f9e90da310a96b79ff2"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", what, c.got, c.want)
		}
	}
}

func TestWhatAnIDTellsApart(t *testing.T) {
	base := set(1, "4711", nine)
	for what, change := range map[string]func(*billing.Event){
		"cluster":       func(e *billing.Event) { e.Cluster = "other" },
		"namespace":     func(e *billing.Event) { e.Namespace = "other" },
		"namespace uid": func(e *billing.Event) { e.NamespaceUID = "other" },
		"tenant":        func(e *billing.Event) { e.Tenant = "other" },
		"tenant uid":    func(e *billing.Event) { e.TenantUID = "other" },
		"generation":    func(e *billing.Event) { e.Generation = 2 },
		"op":            func(e *billing.Event) { e.Op = billing.End },
		"cost center":   func(e *billing.Event) { e.CostCenter = "other" },
		"owner":         func(e *billing.Event) { e.Owner = "other" },
		"a label":       func(e *billing.Event) { e.Labels = map[string]string{"product": "other"} },
		"a label's key": func(e *billing.Event) { e.Labels = map[string]string{"productc": "heckout"} },
		"time":          func(e *billing.Event) { e.EffectiveAt = nine.Add(time.Microsecond) },
		// The border between two fields counts too: the last field's end must not look like the next one's beginning.
		"a border": func(e *billing.Event) { e.CostCenter, e.Owner = e.CostCenter+"a", e.Owner[1:] },
	} {
		other := base
		change(&other)
		if other.Sealed().ID == base.Sealed().ID {
			t.Errorf("another %s has the same ID", what)
		}
	}
	same := base
	same.EffectiveAt = nine.Add(999).In(time.FixedZone("", 3600))
	if same.Sealed().ID != base.Sealed().ID {
		t.Error("nanoseconds and zones must not count: no engine keeps them")
	}
}

func TestSealed(t *testing.T) {
	t.Run("BILL-09 U+0000 and invalid bytes in cost center, owner and labels become U+FFFD", func(t *testing.T) {
		event := set(1, "a\x00b", nine)
		event.Owner, event.Labels = "\xff\xfeann", map[string]string{"k\x00": "v\xc3", "plain": "ж😀'\";--\\"}
		got := event.Sealed()
		if got.CostCenter != "a\uFFFDb" || got.Owner != "\uFFFDann" {
			t.Errorf("cost center %q, owner %q", got.CostCenter, got.Owner)
		}
		if diff := cmp.Diff(map[string]string{"k\uFFFD": "v\uFFFD", "plain": "ж😀'\";--\\"}, got.Labels); diff != "" {
			t.Error(diff)
		}
		if event.Labels["plain"] != "ж😀'\";--\\" || len(event.Labels) != 2 {
			t.Error("the caller's labels were changed")
		}
	})
	t.Run("twice is once", func(t *testing.T) {
		once := set(1, "4711", nine).Sealed()
		if diff := cmp.Diff(once, once.Sealed()); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzSealed(f *testing.F) {
	f.Add("a\x00", "\xff")
	f.Fuzz(func(t *testing.T, costCenter, label string) {
		event := set(1, costCenter, nine)
		event.Labels = map[string]string{label: label}
		sealed := event.Sealed()
		again := sealed
		again.ID, again.ContentHash = "", ""
		if diff := cmp.Diff(sealed, again.Sealed()); diff != "" {
			t.Error(diff)
		}
		if strings.ContainsRune(sealed.CostCenter, 0) {
			t.Errorf("%q holds U+0000", sealed.CostCenter)
		}
	})
}
