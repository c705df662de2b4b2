package copies_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

// script turns the bytes of a fuzzer into changes of a small cluster.
type script []byte

func (s *script) pick(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

func (s *script) some() bool { return s.pick(5) == 4 }

func pickOf[T any](s *script, from ...T) T { return from[s.pick(len(from))] }

// happen makes one random change to the cluster.
func (s *script) happen(c *cluster) {
	slot := pickOf(s, slots...)
	o, stands := c.objects[slot]
	_, isSource := c.origins[slot]
	switch s.pick(16) {
	case 0, 1, 2:
		s.move(c)
	case 3, 4, 5:
		if s.pick(3) > 0 {
			slot.Namespace = pickOf(s, "acme", "zeta", "a", "t1", "t2")
			_, stands = c.objects[slot]
		}
		if !stands {
			c.putSource(slot, s.origin(c.origins[slot].version+1))
		}
	case 6:
		c.removeSource(slot)
	case 7: // a stranger's object, maybe with the label of a copy
		if !stands && !isSource {
			from := pickOf(s, lands...)
			c.put(slot, stored{From: from, Seen: s.pick(2) == 0, Hash: copies.Hash{Mode: update, Place: copies.PlaceOf(slot.At("x"), from)}})
		}
	case 8: // a tenant's user deletes the object
		if stands && !o.Held {
			delete(c.objects, slot)
			c.see(slot)
		}
	case 9, 10:
		if stands && o.Ours && o.Hash.Mode == update {
			o.Drifted = true
			c.put(slot, o)
		}
	case 11:
		if stands {
			o.Held = !o.Held
			c.put(slot, o)
		}
	case 12:
		s.restart(c)
	case 13:
		c.doubt[slot] = !c.doubt[slot]
		c.askAgain()
		c.world.SetLoss(slot, copies.Unverified)
	case 14:
		if kind := pickOf(s, secret, configMap); s.some() {
			c.modes[kind] = pickOf(s, copies.OptIn, copies.All, copies.Remove)
		} else {
			c.synced[kind] = s.pick(4) > 0
		}
		c.setKinds()
	case 15: // a copy has drifted while the operator did not run
		if stands && o.Ours && o.Hash.Mode == update {
			o.Drifted, o.Late = true, true
			c.put(slot, o)
		}
	}
}

// restart makes the operator forget which copies it has written.
func (s *script) restart(c *cluster) {
	for slot, o := range c.objects {
		o.Late = o.Late || o.Ours
		c.put(slot, o)
	}
}

func (s *script) move(c *cluster) {
	name := pickOf(s, lands...)
	l, sound := c.lands[name], land{typed: homes[name].typed, template: homes[name].template}
	switch s.pick(8) {
	case 0, 1, 2: // a change that users make
		if l = sound; l.typed == "" {
			l.parent = pickOf(s, "acme", "zeta", homes[name].parent)
		} else {
			l.template = pickOf(s, "", "t1", homes[name].template)
		}
	case 3: // a change that admission would refuse
		l.typed, l.parent = "", pickOf(s, lands...)
	case 4:
		l.typed, l.parent = pickOf(s, "", "root", "template"), ""
	case 5:
		l.template = pickOf(s, "", "t1", "t2", "gone")
	case 6:
		l.tier = pickOf(s, "", "web")
	case 7:
		l.terminating, l.protected = s.some(), s.some()
	}
	c.lands[name] = l
	c.replant()
}

func (s *script) origin(version int) origin {
	o := origin{mode: pickOf(s, update, update, create, none), version: version,
		selector: pickOf(s, "", "", "tier=web", "acme.tree.tenancy.warren.dev/depth>1", "!a.tree.tenancy.warren.dev/depth")}
	o.invalid, o.excluded, o.terminating = s.some(), s.some(), s.some()
	return o
}

// Whatever happens, and in whatever order the operator works: it never writes to an object that it did not write, and never writes a copy
// while old ones must still go. Its work comes to an end, and then every object is as the rules require.
func FuzzPlan(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		bytes := make([]byte, 300+random.IntN(500))
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		c, s := newCluster(t), script(bytes)
		for len(s) > 0 {
			for range 1 + s.pick(8) {
				s.happen(c)
			}
			order := append([]copies.Slot{}, slots...)
			for i := range order {
				j := s.pick(i + 1)
				order[i], order[j] = order[j], order[i]
			}
			want, before := c.expected(), c.String()
			c.settle(order)
			ignored := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Late" }, cmp.Ignore())
			if diff := cmp.Diff(want, c.objects, ignored); diff != "" {
				t.Fatalf("-by the rules, +settled:\n%s\nfrom\n%s", diff, before)
			}
			requireIndexed(t, c.world)
		}
	})
}

// requireIndexed fails unless SlotsIn of each namespace has every slot there in which something is to do.
func requireIndexed(t *testing.T, w *copies.World) {
	t.Helper()
	for _, slot := range slots {
		if w.Plan(slot) == (copies.Action{}) {
			continue
		}
		found := false
		for _, s := range w.SlotsIn(slot.Namespace) {
			found = found || s == slot
		}
		if !found {
			t.Fatalf("%s needs %v, but SlotsIn does not name it", slot, w.Plan(slot))
		}
	}
	for _, kind := range []schema.GroupKind{secret, configMap} {
		_, copies := w.KindIn(kind, copies.Everywhere)
		for _, slot := range copies {
			if from := slot.At(w.Copies.At(slot).From); !w.Copies.HasCopyOf(from) {
				t.Fatalf("%s is a copy of %s, which is said to have none", slot, from)
			}
		}
	}
}
