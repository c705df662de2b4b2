package copies_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copies/copiestest"
	"github.com/warren-tenancy/warren/internal/forest"
)

var secret = schema.GroupKind{Kind: "Secret"}

// at is the slot of Secret s, which most tests are about.
func at(namespace string) copies.Slot {
	return copies.Slot{Kind: secret, Namespace: namespace, Name: "s"}
}

// other is the slot of another Secret in that namespace.
func other(namespace string) copies.Slot {
	return copies.Slot{Kind: secret, Namespace: namespace, Name: "other"}
}

var planted, acme, limited = copiestest.Planted, copiestest.Acme, copiestest.Limited

// fact is one thing that a World of a test knows.
type fact func(*copies.World)

// world knows Secrets in mode OptIn, all in sight, and the facts.
func world(f *forest.Snapshot, facts ...fact) *copies.World {
	w := copies.NewWorld(f)
	w.SetKind(secret, copies.OptIn, true)
	for _, fact := range facts {
		fact(w)
	}
	return w
}

func kind(mode copies.KindMode, synced bool) fact {
	return func(w *copies.World) { w.SetKind(secret, mode, synced) }
}

// content is used in place of the content hash of a source. It consists of the source's namespace and the number of its version.
func content(namespace string, version int) string {
	return fmt.Sprintf("%-30s%02d", namespace, version)
}

func source(namespace, mode string, change ...func(*copies.Source)) fact {
	return func(w *copies.World) {
		s := &copies.Source{UID: "uid", ResourceVersion: "1", Mode: mode, Content: content(namespace, 1), Meta: 7}
		for _, c := range change {
			c(s)
		}
		w.PutSource(at(namespace), s)
	}
}

func selecting(text string) func(*copies.Source) {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return func(s *copies.Source) { s.Selector = selector }
}

func invalid(s *copies.Source)  { s.Invalid = "typo" }
func excluded(s *copies.Source) { s.Excluded = "it has finalizers" }
func unread(s *copies.Source)   { s.Content, s.Meta = "", 0 }
func going(s *copies.Source)    { s.Terminating = true }
func changed(s *copies.Source)  { s.Content = s.Content[:30] + "02" }
func lost(namespace string, l copies.Loss) fact {
	return func(w *copies.World) { w.SetLoss(at(namespace), l) }
}

// copied is a copy of ours in namespace, written from the first version of the source in from.
func copied(namespace, from, mode string, change ...func(*copies.Copy)) fact {
	return copiedTo(at(namespace), from, mode, change...)
}

func copiedTo(slot copies.Slot, from, mode string, change ...func(*copies.Copy)) fact {
	return func(w *copies.World) {
		hash := copies.Hash{Mode: mode, Place: copies.PlaceOf(slot, from), Content: content(from, 1)}
		c := &copies.Copy{UID: "uid-" + slot.Namespace, ResourceVersion: "1", From: from, Hash: hash, Ours: true, Digest: 1, Meta: 7}
		for _, change := range change {
			change(c)
		}
		w.PutCopy(slot, c)
	}
}

func forged(c *copies.Copy)     { c.Ours = false }
func drifted(c *copies.Copy)    { c.Drifted = true }
func vanishing(c *copies.Copy)  { c.Terminating = true }
func unknown(c *copies.Copy)    { c.Digest = 0 }
func foreign(c *copies.Copy)    { c.Foreign = true }
func relabelled(c *copies.Copy) { c.Meta = 8 }
func marked(c *copies.Copy)     { c.Marked = true }
