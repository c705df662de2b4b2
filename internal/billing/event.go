package billing

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Op describes what an event does to its namespace.
type Op string

const (
	// Set opens a period, and closes the one before it.
	Set Op = "SET"
	// End closes the open period of its namespace if that period has the event's tenant UID and namespace UID; else it
	// has no effect.
	End Op = "END"
)

// Event is one row of the ledger, the table of changes in the warehouse. Its ID is a hash of its content: see Sealed.
type Event struct {
	// ID is the row's key, 64 hexadecimal digits.
	ID string `json:"event_id"`

	// Cluster is the cluster's name in the cost data.
	Cluster      string `json:"cluster"`
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespace_uid"`

	// Tenant is the name of the LNamespace, TenantUID its UID: an LNamespace that is deleted and created again is
	// another tenant.
	Tenant    string `json:"tenant"`
	TenantUID string `json:"tenant_uid"`

	// Generation is the metadata.generation of the LNamespace. It orders events that have the same effective_at. A gap
	// between two events of a tenant shows that the LNamespace was changed in between.
	Generation int64 `json:"generation"`
	Op         Op    `json:"op"`

	// CostCenter, Owner and Labels are empty in an END.
	CostCenter string            `json:"cost_center"`
	Owner      string            `json:"owner"`
	Labels     map[string]string `json:"labels"`

	// ContentHash is the hash of tenant, cost center, owner and labels, see contentHash; in an END, the hash of the
	// period that it closes.
	ContentHash string `json:"content_hash"`

	// EffectiveAt is when the change took effect; UTC, in whole microseconds.
	EffectiveAt time.Time `json:"effective_at"`
}

// instantFormat has a fixed width, so that text sorts as time does.
const instantFormat = "2006-01-02T15:04:05.000000Z"

// tick is the smallest step of time that all database engines store.
const tick = time.Microsecond

func instantText(t time.Time) string { return t.UTC().Format(instantFormat) }

// Sealed returns the event as it is stored: with text that every engine takes, a time in UTC cut to microseconds,
// ContentHash and ID. The ID is a hash of all fields, with ContentHash in the place of tenant, cost center, owner and
// labels. An event with an ID is sealed already and is returned as it is.
func (e Event) Sealed() Event {
	if e.ID != "" {
		return e
	}
	for _, field := range []*string{&e.Cluster, &e.Namespace, &e.NamespaceUID, &e.Tenant, &e.TenantUID, &e.CostCenter, &e.Owner} {
		*field = cleanText(*field)
	}
	e.Labels = cleanLabels(e.Labels)
	e.EffectiveAt = e.EffectiveAt.UTC().Truncate(tick)
	if e.ContentHash == "" {
		e.ContentHash = contentHash(e.Tenant, e.CostCenter, e.Owner, e.Labels)
	}
	h := sha256.New()
	digestParts(h, e.Cluster, e.Namespace, e.NamespaceUID, e.TenantUID, strconv.FormatInt(e.Generation, 10), string(e.Op), e.ContentHash,
		instantText(e.EffectiveAt))
	e.ID = hex.EncodeToString(h.Sum(nil))
	return e
}

// contentHash returns the SHA-256, in hexadecimal, of tenant, cost center, owner and the sorted labels. Periods with
// equal hashes are billed alike.
func contentHash(tenant, costCenter, owner string, labels map[string]string) string {
	h := sha256.New()
	digestParts(h, tenant, costCenter, owner)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		digestParts(h, key, labels[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digestParts writes each part after its length, so that two different lists of parts never write the same bytes.
func digestParts(h hash.Hash, parts ...string) {
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
}

// cleanText replaces by U+FFFD what some engine refuses in text: U+0000 (PostgreSQL's jsonb) and bytes that aren't
// UTF-8.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanLabels returns the labels with clean keys and values, never nil. Where several keys become equal, the last one
// in sorted order wins, so that the result is always the same.
func cleanLabels(labels map[string]string) map[string]string {
	cleaned := make(map[string]string, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		cleaned[cleanText(key)] = cleanText(labels[key])
	}
	return cleaned
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s of tenant %s at %s", e.Op, e.Namespace, e.Tenant, instantText(e.EffectiveAt))
}
