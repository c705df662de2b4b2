package copies

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Hash is the parsed annotation source-hash: <mode>:<place>:<content>.
type Hash struct {
	// Mode is create or update; empty for a text that is no hash.
	Mode string
	// Place is 16 hex digits over where the copy stands and what it comes from.
	Place string
	// Content is 32 hex digits over everything that was written.
	Content string
}

// Unwritten is the content of a copy in mode create that another operator wrote and a migration took over: Warren has not given it, so
// Warren does not delete it.
var Unwritten = strings.Repeat("0", 32)

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
