package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Usage is what a namespace had reserved in a piece of an hour (see Meter). The row with an empty Namespace is the cluster's own,
// and says that this piece was watched: a namespace without a row had nothing reserved then. Where the cluster's own row is
// missing, nobody knows what was reserved.
type Usage struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	// Hour is when the hour began, in UTC. CoveredFrom and CoveredUntil are the piece's ends within that hour, CoveredSeconds apart.
	Hour           time.Time `json:"-"`
	CoveredFrom    time.Time `json:"-"`
	CoveredUntil   time.Time `json:"-"`
	CoveredSeconds int64     `json:"covered_seconds"`

	MilliCPUSeconds   int64 `json:"cpu_millicore_seconds"`
	MemoryMiBSeconds  int64 `json:"memory_mib_seconds"`
	StorageMiBSeconds int64 `json:"storage_mib_seconds"`
	GPUSeconds        int64 `json:"gpu_seconds"`
}

// usageText is the JSON form of a row, in the outbox and in statements.
type usageText struct {
	ID string `json:"usage_id"`
	Usage
	Hour         string `json:"hour"`
	CoveredFrom  string `json:"covered_from"`
	CoveredUntil string `json:"covered_until"`
}

// ID returns the row's key, a hash of cluster, namespace and the piece's beginning, so that a row that is sent again is stored once.
func (u Usage) ID() string {
	h := sha256.New()
	digest(h, clean(u.Cluster), clean(u.Namespace), instantText(u.CoveredFrom))
	return hex.EncodeToString(h.Sum(nil))
}

func (u Usage) row() ([]byte, error) {
	id := u.ID()
	u.Cluster, u.Namespace = clean(u.Cluster), clean(u.Namespace)
	text, err := json.Marshal(usageText{ID: id, Usage: u, Hour: instantText(u.Hour), CoveredFrom: instantText(u.CoveredFrom),
		CoveredUntil: instantText(u.CoveredUntil)})
	if err != nil {
		return nil, fmt.Errorf("writing the usage of %s as JSON: %w", u.Namespace, err)
	}
	return text, nil
}

func parseUsage(payload string) (Usage, error) {
	var text usageText
	if err := json.Unmarshal([]byte(payload), &text); err != nil {
		return Usage{}, err
	}
	u := text.Usage
	for _, field := range []struct {
		text string
		into *time.Time
	}{{text.Hour, &u.Hour}, {text.CoveredFrom, &u.CoveredFrom}, {text.CoveredUntil, &u.CoveredUntil}} {
		var at instant
		if err := at.Scan(field.text); err != nil {
			return u, err
		}
		*field.into = at.Time
	}
	return u, nil
}

// AppendUsage stores rows in batches, in their order, and returns how many were new. After an error the first of them may be
// stored; to append all of them again is harmless.
func (s *Store) AppendUsage(ctx context.Context, rows []Usage) (added int64, err error) {
	return s.inserts.insert(ctx, s.text.usageInsert, "hours to "+s.options.Table+usageSuffix, func(yield func(insertion, error) bool) {
		for _, u := range rows {
			row, err := u.row()
			if !yield(insertion{row, u.Hour}, err) {
				return
			}
		}
	})
}
