// Package propagate plans what must be written so that copies follow their sources. It is pure: a World of forest, sources and copies goes
// in, actions come out.
//
// The words of this package: a source is an object that is propagated; a copy is an object that the operator wrote from a source, and bears
// the label inherited-from. A slot is the place (kind, namespace, name) of one copy, whether or not the copy exists. An access copy is a copy
// of a RoleBinding by which the operator hands out the access of a tenant. A rail is a copy of any kind but RoleBinding, such as a quota or a
// network policy; rails keep in bounds what rights allow. A narrow kind is watched only where the operator's RBAC allows; the sight of such a
// kind says in which namespaces the operator sees its objects. A namespace is halted while its way to a root is broken, as by a missing
// parent or a cycle: nothing is given there.
package propagate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Slot is the place of one copy, whether or not the copy exists.
type Slot struct {
	Kind      schema.GroupKind
	Namespace string
	Name      string
}

// String is how logs name a slot.
func (s Slot) String() string { return s.Kind.Kind + " " + s.Namespace + "/" + s.Name }

// At is the slot of the same kind and name in another namespace.
func (s Slot) At(namespace string) Slot {
	s.Namespace = namespace
	return s
}

// Hash is the parsed annotation source-hash: <mode>:<place>:<content>.
type Hash struct {
	// Mode is create or update; empty for a text that is no hash.
	Mode string
	// Place is 16 hex digits over where the copy stands and what it comes from.
	Place string
	// Content is 32 hex digits over everything that was written.
	Content string
}

// String is the text of the annotation.
func (h Hash) String() string { return h.Mode + ":" + h.Place + ":" + h.Content }

// ParseHash reads the annotation source-hash. A text of another form yields the zero Hash.
func ParseHash(text string) Hash {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] != v1alpha1.ModeCreate && parts[0] != v1alpha1.ModeUpdate || len(parts[1]) != 16 || len(parts[2]) != 32 {
		return Hash{}
	}
	mode := v1alpha1.ModeUpdate
	if parts[0] == v1alpha1.ModeCreate {
		mode = v1alpha1.ModeCreate
	}
	return Hash{Mode: mode, Place: parts[1], Content: parts[2]}
}

// PlaceOf returns the place of a hash, which ties the hash to the copy's slot and to its source's namespace: a copy that someone exports to
// another namespace is no copy there.
func PlaceOf(slot Slot, from string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{slot.Kind.Group, slot.Kind.Kind, slot.Namespace, slot.Name, from}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// contentOf is the hash of canonical JSON.
func contentOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}
