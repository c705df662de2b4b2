package copies_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// land is a namespace of the simulated cluster.
type land struct {
	typed, parent, template, tier string
	terminating, protected        bool
}

// origin is a source as the API server stores it.
type origin struct {
	mode, selector                 string
	version                        int
	invalid, excluded, terminating bool
}

func (o origin) content(slot copies.Slot) string {
	return content(slot.Namespace+slot.Name, o.version)
}

// stored is an object in a slot that is not a source: a copy, or a stranger's object.
type stored struct {
	From                       string // its label inherited-from
	Hash                       copies.Hash
	Ours                       bool // the operator wrote the object
	Seen                       bool // the object has the label, so the operator's watch shows the object
	Held                       bool // a finalizer keeps the object once it is deleted
	Terminating, Drifted, Late bool // Late: since the operator wrote it, the operator was restarted
}

// cluster simulates an API server and its namespaces. It carries out actions, and fails the test on an action that must never happen.
type cluster struct {
	t       *testing.T
	lands   map[string]land
	origins map[copies.Slot]origin
	objects map[copies.Slot]stored
	modes   map[schema.GroupKind]copies.KindMode
	synced  map[schema.GroupKind]bool
	doubt   map[copies.Slot]bool // sources of which a live read would leave in doubt whether they are lost
	world   *copies.World
}

// homes are the namespaces, with their places in the forest, at the beginning.
var homes = map[string]land{
	"acme": {typed: "root", template: "t2"}, "a": {parent: "acme"}, "a1": {parent: "a"}, "b": {parent: "acme"},
	"zeta": {typed: "root"}, "z": {parent: "zeta"}, "t1": {typed: "template"}, "t2": {typed: "template", template: "t1"}, "solo": {},
}

var (
	lands = []string{"acme", "a", "a1", "b", "zeta", "z", "t1", "t2", "solo"}
	slots = func() (all []copies.Slot) {
		for _, namespace := range lands {
			all = append(all, at(namespace), other(namespace), in(namespace, configMap, "s"))
		}
		return all
	}()
)

func newCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, origins: map[copies.Slot]origin{}, objects: map[copies.Slot]stored{}, doubt: map[copies.Slot]bool{},
		modes:  map[schema.GroupKind]copies.KindMode{secret: copies.OptIn, configMap: copies.All},
		synced: map[schema.GroupKind]bool{secret: true, configMap: true},
		lands:  maps.Clone(homes),
	}
	c.world = copies.NewWorld(nil)
	c.replant()
	c.setKinds()
	return c
}

// replant makes a new forest from the namespaces as they are now.
func (c *cluster) replant() {
	f := forest.New(forest.Rules{})
	for name, l := range c.lands {
		keys := map[string]string{v1alpha1.LabelType: l.typed, v1alpha1.LabelParent: l.parent, v1alpha1.LabelTemplate: l.template, "tier": l.tier}
		if l.protected {
			keys[v1alpha1.LabelProtected] = v1alpha1.True
		}
		f = f.WithNamespace(&forest.Namespace{Name: name, UID: name, Labels: keys, Terminating: l.terminating})
	}
	c.world.Forest = f
	c.askAgain()
}

// askAgain forgets every doubt, as the engine does when something about a namespace changes.
func (c *cluster) askAgain() {
	for _, slot := range slots {
		if c.world.Loss(slot) == copies.Doubtful {
			c.world.SetLoss(slot, copies.Unverified)
		}
	}
}

func (c *cluster) setKinds() {
	for kind, mode := range c.modes {
		c.world.SetKind(kind, mode, c.synced[kind])
	}
}

// see shows the operator the object at slot, if its watch would show it.
func (c *cluster) see(slot copies.Slot) {
	o, ok := c.objects[slot]
	switch {
	case !ok:
		c.world.DeleteCopy(slot)
	case o.Seen:
		known := &copies.Copy{UID: "u", ResourceVersion: "1", From: o.From, Hash: o.Hash, Ours: o.Ours, Terminating: o.Terminating, Digest: 1,
			Drifted: o.Drifted}
		if o.Late {
			known.Digest, known.Drifted, known.Foreign = 0, false, o.Drifted
		}
		c.world.PutCopy(slot, known)
	}
}

func (c *cluster) put(slot copies.Slot, o stored) {
	c.objects[slot] = o
	c.see(slot)
}

func (c *cluster) putSource(slot copies.Slot, o origin) {
	c.origins[slot] = o
	s := &copies.Source{UID: "u", Mode: o.mode, Content: o.content(slot), Terminating: o.terminating}
	if o.invalid {
		s.Invalid = "typo"
	}
	if o.excluded {
		s.Excluded = "it has finalizers"
	}
	if o.selector != "" {
		s.Selector, _ = labels.Parse(o.selector)
	}
	c.world.PutSource(slot, s)
}

func (c *cluster) removeSource(slot copies.Slot) {
	delete(c.origins, slot)
	c.world.DeleteSource(slot)
}

// vanish removes the objects that are being deleted and have no finalizer, and reports whether there were some.
func (c *cluster) vanish() (some bool) {
	for slot, o := range c.objects {
		if o.Terminating && !o.Held {
			delete(c.objects, slot)
			c.see(slot)
			some = true
		}
	}
	return some
}

// act plans one slot and carries the action out. It returns false if there was nothing to do.
func (c *cluster) act(slot copies.Slot) bool {
	action := c.world.Plan(slot)
	o, stands := c.objects[slot]
	switch action.Verb {
	case copies.Nothing:
		return false
	case copies.Create:
		if c.requireAllowed(slot, action); stands && !o.Seen {
			return false // 409: the operator notes that another object is there, and waits
		}
		if _, lower := c.origins[slot]; lower || stands {
			c.t.Fatalf("%s is to be created where something stands", slot)
		}
		c.put(slot, stored{From: action.Source.Namespace, Hash: action.Hash, Ours: true, Seen: true})
	case copies.Update, copies.Inspect:
		c.requireAllowed(slot, action)
		c.requireOurs(slot, action)
		if action.Verb == copies.Inspect && !o.Drifted {
			known := *c.world.Copies.At(slot)
			known.Foreign, known.Meta = false, 0
			c.world.PutCopy(slot, &known)
			break
		}
		o.From, o.Hash, o.Drifted, o.Late = action.Source.Namespace, action.Hash, false, false
		c.put(slot, o)
	case copies.Delete:
		if c.requireOurs(slot, action); o.Hash.Mode != update {
			c.t.Fatalf("%s is in mode %s and to be deleted", slot, o.Hash.Mode)
		}
		o.Terminating = true
		c.put(slot, o)
	case copies.Look:
		c.look(action.Source)
	}
	if again := c.world.Plan(slot); again.Verb != copies.Nothing && action.Verb != copies.Look {
		c.t.Fatalf("%s: after %v the next plan is %v", slot, action, again)
	} else if again.Verb == copies.Look {
		c.t.Fatalf("%s: a look leads to another look", slot)
	}
	return true
}

func (c *cluster) look(slot copies.Slot) {
	if _, ok := c.origins[slot]; ok {
		c.t.Fatalf("%s is looked for, but in sight", slot)
	}
	loss := copies.Confirmed
	if l, ok := c.lands[slot.Namespace]; c.doubt[slot] || !ok || l.terminating {
		loss = copies.Doubtful
	}
	c.world.SetLoss(slot, loss)
}

// requireOurs fails the test if the action would change an object that the operator did not write, or that is being deleted.
func (c *cluster) requireOurs(slot copies.Slot, action copies.Action) {
	if o, ok := c.objects[slot]; !ok || !o.Ours || o.Terminating {
		c.t.Fatalf("%s: %v would touch %+v", slot, action, o)
	}
}

// requireAllowed fails the test if the action would write anything but a copy of the source, or would write while old copies exist.
func (c *cluster) requireAllowed(slot copies.Slot, action copies.Action) {
	o, ok := c.origins[action.Source]
	want := copies.Hash{Mode: o.mode, Place: copies.PlaceOf(slot, action.Source.Namespace), Content: o.content(action.Source)}
	if !ok || action.Hash != want {
		c.t.Fatalf("%s: %v is not what the source says: %v", slot, action, want)
	}
	if old := c.oldCopies(slot.Namespace); len(old) > 0 {
		c.t.Fatalf("%s: %v is planned while %v stand there", slot, action, old)
	}
}

// oldCopies returns the copies in a namespace that must go, because their source's namespace is no longer above it.
func (c *cluster) oldCopies(namespace string) (old []copies.Slot) {
	way, _ := c.way(namespace)
	for slot, o := range c.objects {
		if slot.Namespace == namespace && o.Ours && o.Hash.Mode == update && !slices.Contains(way, o.From) && !c.frozen(namespace, o.From) {
			old = append(old, slot)
		}
	}
	return old
}

// settle has the operator work until nothing is left to do.
func (c *cluster) settle(order []copies.Slot) {
	for range 50 {
		quiet := !c.vanish()
		for _, slot := range order {
			for range 3 { // the first action may only look at the slot
				if !c.act(slot) {
					break
				}
				quiet = false
			}
		}
		if quiet {
			return
		}
	}
	c.t.Fatal("the operator is still at work after 50 rounds")
}

// String describes the cluster, for a test that fails.
func (c *cluster) String() string {
	return fmt.Sprintf("namespaces %+v\nsources %+v\nobjects %+v\nkinds %v, synced %v, in doubt %v", c.lands, c.origins, c.objects,
		c.modes, c.synced, c.doubt)
}
