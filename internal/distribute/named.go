package distribute

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Named says which namespaces the names in includedNamespaces and trees mean: for each name a digest of the namespace's UID. So
// whoever takes the name of a namespace that is missing or gone gets no copy. The zero value takes every namespace for the one that
// its name means.
type Named map[string]string

// nobody is recorded for a name while no namespace is meant.
const nobody = "-"

// appliedTogether is for how long after spec.targets a tenant's namespace may be made and still be the one that is meant: the files
// of one `kubectl apply -f DIR` come in any order.
const appliedTogether = time.Minute

// digestOf returns the record of a UID: 48 bits, because a status holds up to 600 of them, and nobody chooses the UID of a namespace.
func digestOf(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// ReadNamed returns the record in a status; nil if the status has none of these targets.
func (t Targets) ReadNamed(status *v1alpha1.ResourceDistributionStatus) Named {
	names := t.Named()
	if status.Named == nil || status.Named.Targets != t.hash || len(status.Named.UIDs) != len(names) {
		return nil
	}
	named := make(Named, len(names))
	for i, name := range names {
		named[name] = status.Named.UIDs[i]
	}
	return named
}

// write returns the record as a status holds it; nil if t names no namespace.
func (n Named) write(t Targets) *v1alpha1.NamedNamespaces {
	if len(n) == 0 {
		return nil
	}
	record := &v1alpha1.NamedNamespaces{Targets: t.hash}
	for _, name := range t.Named() {
		record.UIDs = append(record.UIDs, n[name])
	}
	return record
}

// Means reports whether the namespace that has a name now is the one that the name means.
func (n Named) Means(f *forest.Snapshot, name string) bool {
	recorded, ok := n[name]
	if !ok {
		return true
	}
	namespace := f.Namespace(name)
	return namespace != nil && recorded == digestOf(namespace.UID)
}

// Replaced returns the names that another namespace has taken than the one that was meant, in alphabetical order.
func (n Named) Replaced(f *forest.Snapshot) []string {
	var names []string
	for name := range n {
		if f.Namespace(name) != nil && !n.Means(f, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// RecordNames records which namespaces the names mean that have none recorded in known. changed reports whether the result differs from
// known. A status that an earlier version wrote has no record: then whatever has the name is meant.
func (d *Distribution) RecordNames(f *forest.Snapshot, known Named) (named Named, changed bool) {
	named = Named{}
	for _, name := range d.Targets.Named() {
		named[name] = nobody
		if recorded := known[name]; recorded != "" {
			named[name] = recorded
		}
		n := f.Namespace(name)
		if named[name] == nobody && n != nil && !n.Terminating && (known == nil && d.unrecorded || d.isMeant(f, n)) {
			named[name] = digestOf(n.UID)
		}
		changed = changed || named[name] != known[name]
	}
	return named, changed
}

// isMeant reports whether a namespace that has a name of spec.targets, and wasn't there before, is the one that was meant. A
// namespace that somebody made directly is: that takes a right in the whole cluster, which no tenant has. One that the operator made
// for an LNamespace or a SubNamespace is only if that object is about as old as spec.targets, or older: otherwise a tenant could
// take the name.
func (d *Distribution) isMeant(f *forest.Snapshot, n *forest.Namespace) bool {
	var made time.Time
	switch t := f.Tenant(n.Name); {
	case n.Bound():
		sub := f.Sub(n.Parent(), n.Name)
		if sub == nil {
			return false // its SubNamespace isn't known yet, or is deleted
		}
		made = sub.Created
	case n.TenantUID() == "":
		return true
	case t == nil || t.UID != n.TenantUID():
		return false // its LNamespace isn't known yet, or is deleted
	default:
		made = t.Created
	}
	return made.Before(d.written.Add(appliedTogether))
}
