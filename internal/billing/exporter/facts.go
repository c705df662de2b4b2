package exporter

import (
	"maps"
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// The exporter follows tens of thousands of objects, so it keeps only a few strings of each, and equal strings once.
// Facts are immutable.

// namespaceFacts are the values of a Namespace that the ledger needs.
type namespaceFacts struct {
	*forest.Namespace
	// owner is the UID of the LNamespace that made or adopted the Namespace; "" if there is none.
	owner types.UID
	// made is the Namespace's creationTimestamp.
	made time.Time
}

// tenantFacts are the values of an LNamespace that the ledger needs, and the condition that the exporter has written.
type tenantFacts struct {
	name       string
	uid        types.UID
	generation int64
	// made is the LNamespace's creationTimestamp.
	made time.Time
	// since is when cost center and owner got their present values, as the operator has recorded it in the status.
	// Without such a record, it is the LNamespace's creationTimestamp.
	since             time.Time
	costCenter, owner string
	// labels are keys and values in turns, sorted by key: a map would take ten times the memory.
	labels []string
	// reported is condition BillingExported in the LNamespace's status; nil if there is none.
	reported *metav1.Condition
}

// factsOf returns a *namespaceFacts for a Namespace's metadata, and a *tenantFacts for an LNamespace. It returns any
// other object, such as facts, unchanged.
func factsOf(object any) any {
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		whole := forest.Namespace{Name: object.Name, UID: string(object.UID), Labels: object.Labels, Annotations: object.Annotations,
			Terminating: object.DeletionTimestamp != nil}
		return &namespaceFacts{Namespace: whole.Placing(), owner: types.UID(whole.TenantUID()), made: object.CreationTimestamp.Time}
	case *v1alpha1.LNamespace:
		return factsOfTenant(object)
	}
	return object
}

func factsOfTenant(l *v1alpha1.LNamespace) *tenantFacts {
	f := &tenantFacts{name: l.Name, uid: l.UID, generation: l.Generation, made: l.CreationTimestamp.Time, since: l.CreationTimestamp.Time}
	if b := l.Spec.Billing; b != nil {
		f.costCenter, f.owner = shareText(b.CostCenter), shareText(b.Owner)
		for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
			f.labels = append(f.labels, shareText(key), shareText(b.Labels[key]))
		}
	}
	if s := l.Status.Billing; s != nil && s.CostCenter == f.costCenter && s.Owner == f.owner && s.Since.After(f.since) {
		f.since = s.Since.Time
	}
	if c := v1alpha1.FindCondition(l.Status.Conditions, v1alpha1.ConditionBillingExported); c != nil {
		f.reported = &metav1.Condition{Type: shareText(c.Type), Status: metav1.ConditionStatus(shareText(string(c.Status))),
			ObservedGeneration: c.ObservedGeneration,
			LastTransitionTime: c.LastTransitionTime, Reason: shareText(c.Reason), Message: shareText(c.Message)}
	}
	return f
}

// shareText returns a shared copy of a text that many objects have. At each garbage collection, Go forgets which texts
// have a shared copy. So equal texts share a copy only if no garbage collection runs between them, as is the case for
// most texts of one list.
func shareText(text string) string { return unique.Make(text).Value() }

// labelMap returns the labels as a map; nil if there are none.
func (f *tenantFacts) labelMap() map[string]string {
	if len(f.labels) == 0 {
		return nil
	}
	labels := make(map[string]string, len(f.labels)/2)
	for pair := range slices.Chunk(f.labels, 2) {
		labels[pair[0]] = pair[1]
	}
	return labels
}
