package exporter

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// cluster is what the watches have told so far: who stands where, and who pays.
type cluster struct {
	forest *forest.Snapshot
	// made is when each namespace was made.
	made   map[string]time.Time
	payers map[string]payer
}

// payer is what the ledger needs of one LNamespace.
type payer struct {
	uid        types.UID
	generation int64
	// since is when cost center and owner became what they are, as far as the operator has stamped it; otherwise when the
	// LNamespace was made.
	since   time.Time
	billing v1alpha1.Billing
}

func newCluster(rules forest.Rules) *cluster {
	return &cluster{forest: forest.New(rules), made: map[string]time.Time{}, payers: map[string]payer{}}
}

// holding says what is known of a namespace's tenant.
type holding int

const (
	// held by a tenant.
	held holding = iota
	// free of any tenant, or gone.
	unheld
	// unplaced: its way to a root is lost, and whoever pays goes on paying.
	unplaced
)

// namespaceSeen takes the facts of a namespace. It returns whose bills may differ now, and whether the namespace is new.
func (c *cluster) namespaceSeen(n *metav1.PartialObjectMetadata) (names []string, fresh bool) {
	before := c.forest.Namespace(n.Name)
	c.made[n.Name] = n.CreationTimestamp.Time
	c.forest = c.forest.WithNamespace(&forest.Namespace{Name: n.Name, UID: string(n.UID), ResourceVersion: n.ResourceVersion,
		Labels: n.Labels, Annotations: n.Annotations, Terminating: n.DeletionTimestamp != nil})
	return c.tree(n.Name), before == nil || before.UID != string(n.UID)
}

func (c *cluster) namespaceGone(name string, uid types.UID) []string {
	if known := c.forest.Namespace(name); known == nil || known.UID != string(uid) {
		return nil // another of that name has come meanwhile
	}
	delete(c.made, name)
	c.forest = c.forest.WithoutNamespace(name)
	return c.tree(name)
}

func (c *cluster) tenantSeen(l *v1alpha1.LNamespace) (names []string, fresh bool) {
	before := c.payers[l.Name]
	p := payer{uid: l.UID, generation: l.Generation, since: l.CreationTimestamp.Time}
	if l.Spec.Billing != nil {
		p.billing = *l.Spec.Billing
	}
	if s := l.Status.Billing; s != nil && s.CostCenter == p.billing.CostCenter && s.Owner == p.billing.Owner && s.Since.After(p.since) {
		p.since = s.Since.Time
	}
	c.payers[l.Name] = p
	return c.tree(l.Name), before.uid != l.UID
}

func (c *cluster) tenantGone(name string, uid types.UID) []string {
	if c.payers[name].uid != uid {
		return nil
	}
	delete(c.payers, name)
	return c.tree(name)
}

// tree is the namespace called name and all that hang below it, sound or not.
func (c *cluster) tree(name string) []string {
	found := []string{name}
	seen := map[string]bool{name: true}
	for i := 0; i < len(found); i++ {
		for _, child := range c.forest.Children(found[i]) {
			if !seen[child] {
				seen[child] = true
				found = append(found, child)
			}
		}
	}
	return found
}

// desired is what the namespace's open period should say.
func (c *cluster) desired(name string) (billing.Desired, holding) {
	n := c.forest.Namespace(name)
	if n == nil {
		return billing.Desired{}, unheld
	}
	place := c.forest.Place(name)
	if place.Halted() {
		return billing.Desired{}, unplaced
	}
	if !place.InTree() {
		return billing.Desired{}, unheld
	}
	tenant := place.Path[0]
	p, ok := c.payers[tenant]
	if !ok || !c.forest.Owns(tenant, string(p.uid)) {
		return billing.Desired{}, unheld
	}
	since := c.made[name]
	if p.since.After(since) {
		since = p.since
	}
	return billing.Desired{NamespaceUID: n.UID, Tenant: tenant, TenantUID: string(p.uid), Generation: p.generation,
		CostCenter: p.billing.CostCenter, Owner: p.billing.Owner, Labels: p.billing.Labels, Since: since}, held
}

// all is what should be, and of which namespaces nobody can say.
func (c *cluster) all() (desired map[string]billing.Desired, unknown map[string]bool) {
	desired, unknown = map[string]billing.Desired{}, map[string]bool{}
	for name := range c.forest.All() {
		switch d, h := c.desired(name); h {
		case held:
			desired[name] = d
		case unplaced:
			unknown[name] = true
		}
	}
	return desired, unknown
}

// slimNamespace keeps what decides on a namespace's place.
func slimNamespace(object any) (any, error) {
	if n, ok := object.(*metav1.PartialObjectMetadata); ok {
		foreign := func(key, _ string) bool { return !strings.HasPrefix(key, v1alpha1.Domain+"/") }
		maps.DeleteFunc(n.Labels, foreign)
		maps.DeleteFunc(n.Annotations, foreign)
		n.ManagedFields, n.OwnerReferences, n.Finalizers = nil, nil, nil
	}
	return object, nil
}

// slimTenant keeps who pays, and the one condition that the exporter writes.
func slimTenant(object any) (any, error) {
	if l, ok := object.(*v1alpha1.LNamespace); ok {
		l.ManagedFields, l.Annotations, l.Labels = nil, nil, nil
		l.Spec = v1alpha1.LNamespaceSpec{Billing: l.Spec.Billing}
		l.Status = v1alpha1.LNamespaceStatus{Billing: l.Status.Billing, Conditions: slices.DeleteFunc(l.Status.Conditions,
			func(condition metav1.Condition) bool {
				return condition.Type != string(v1alpha1.ConditionBillingExported)
			})}
	}
	return object, nil
}
