package copyengine

import (
	"maps"
	"slices"
	"time"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// core is what all parts share: the settings, the World, and the Input that is being applied.
type core struct {
	settings Settings
	world    *copies.World
	now      time.Time // of that Input
	out      collector // its Outputs
	leading  bool      // this replica leads
	// reporting reports that all objects that must be worked on are known. Before, there is nothing to report.
	reporting bool
}

// collector gathers the Outputs of one Input. Each key and each namespace is in it once.
type collector struct {
	keys    []Key
	queued  map[Key]bool
	reports map[string]bool
	others  []Output
}

func (c *collector) takeOutputs() []Output {
	all := c.others
	if len(c.reports) > 0 {
		all = append(all, Report{Namespaces: slices.Sorted(maps.Keys(c.reports))})
	}
	if len(c.keys) > 0 {
		all = append(all, Queue{Keys: c.keys})
	}
	*c = collector{}
	return all
}

func (c *collector) hasRequest() bool {
	return slices.ContainsFunc(c.others, func(one Output) bool { _, is := one.(Request); return is })
}

// countKeys returns how many keys are queued; dropKeysSince takes back the keys that were queued since, except keys of
// namespaces: these have waited for the removal of what was dropped, and nothing else queues them.
func (c *collector) countKeys() int { return len(c.keys) }

func (c *collector) dropKeysSince(before int) {
	kept := c.keys[:before]
	for _, key := range c.keys[before:] {
		if key.Task == LookAtNamespace {
			kept = append(kept, key)
		} else {
			delete(c.queued, key)
		}
	}
	c.keys = kept
}

// queueKeys queues keys without a delay.
func (c *core) queueKeys(keys ...Key) {
	if c.out.queued == nil {
		c.out.queued = make(map[Key]bool, len(keys))
	}
	for _, key := range keys {
		if !c.out.queued[key] {
			c.out.queued[key] = true
			c.out.keys = append(c.out.keys, key)
		}
	}
}

// queueNaming queues what names the Role at slot: copied RoleBindings beside it, which exist only as long as the Role's copy
// (PROP-I13), and sources beside it, whose copies depend on it, too. It does nothing for a slot of another kind.
func (c *core) queueNaming(role copies.Slot) {
	if role.Kind != copies.RoleKind {
		return
	}
	c.queueKeys(slotKeys(c.world.BindingsTo(role))...)
	for _, slot := range c.world.Sources.In(copies.RoleBindingKind, role.Namespace) {
		if c.world.Sources.At(slot).Role == role.Name {
			c.queueKeys(sourceTask(slot))
		}
	}
}

// queueHeldBack queues a look at the limits of each tree whose limits hold sources back.
func (c *core) queueHeldBack() {
	for _, root := range c.world.Limits.RootsHeldBack() {
		c.queueKeys(limitsKey(root))
	}
}

// queueAfter queues a key after a delay.
func (c *core) queueAfter(key Key, delay time.Duration) {
	c.out.others = append(c.out.others, Queue{Keys: []Key{key}, After: max(delay, 1)})
}

// emitOutput adds an Output.
func (c *core) emitOutput(one Output) { c.out.others = append(c.out.others, one) }

// queueLimits queues a look at the limits of the tree around namespace, if they hold sources back.
func (c *core) queueLimits(namespace string) {
	if c.world.Limits.HoldsBack(namespace) {
		c.queueKeys(limitsKey(c.world.Forest.RootOf(namespace)))
	}
}

// reviewLimitsSoon queues, after limitsPause, a look at the limits of the tree around namespace, if they hold sources
// back.
func (c *core) reviewLimitsSoon(namespace string) {
	if c.world.Limits.HoldsBack(namespace) {
		c.queueAfter(limitsKey(c.world.Forest.RootOf(namespace)), limitsPause)
	}
}

// reportNamespaces reports that these namespaces, and those above them, have something new to report.
func (c *core) reportNamespaces(namespaces ...string) {
	for _, name := range namespaces {
		if name != "" {
			c.reportAbove(c.world.Forest, name)
		}
	}
}

// reportAbove reports a namespace, and those above it in the forest f.
func (c *core) reportAbove(f *forest.Snapshot, namespace string) {
	c.reportOne(namespace)
	for _, above := range f.Place(namespace).Path {
		c.reportOne(above)
	}
}

// beginReporting records that all objects that must be worked on are known.
func (c *core) beginReporting() { c.reporting = true }

// reportOne reports one namespace, if the core is reporting.
func (c *core) reportOne(namespace string) {
	if !c.reporting {
		return
	}
	if c.out.reports == nil {
		c.out.reports = map[string]bool{}
	}
	c.out.reports[namespace] = true
}

// reportEverywhere reports every namespace with a HierarchyConfiguration.
func (c *core) reportEverywhere() {
	f := c.world.Forest
	for name := range f.All() {
		if f.Hierarchy(name) != nil {
			c.reportOne(name)
		}
	}
}

// reportVisibility reports the namespaces whose copies depend on what the operator sees in namespace, or Everywhere.
func (c *core) reportVisibility(namespace string) {
	if namespace == copies.Everywhere {
		c.reportEverywhere()
		return
	}
	c.reportNamespaces(namespace)
	for below := range c.world.Forest.Below(namespace) {
		c.reportOne(below)
	}
}

// limitsPause is how long a look at the limits of a tree is delayed, so that one look serves all slots of the tree that
// are held back one after the other.
const limitsPause = 100 * time.Millisecond
