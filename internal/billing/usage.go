package billing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Usage is what a namespace had reserved in a piece of an hour, or, without a namespace, that all of this piece was watched: a
// namespace without a row had nothing then, and where the cluster's own row is missing nobody knows.
type Usage struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	// Hour is when the hour began, in UTC; CoveredFrom and CoveredUntil lie in it, CoveredSeconds apart.
	Hour           time.Time `json:"-"`
	CoveredFrom    time.Time `json:"-"`
	CoveredUntil   time.Time `json:"-"`
	CoveredSeconds int64     `json:"covered_seconds"`

	MilliCPUSeconds   int64 `json:"cpu_millicore_seconds"`
	MemoryMiBSeconds  int64 `json:"memory_mib_seconds"`
	StorageMiBSeconds int64 `json:"storage_mib_seconds"`
	GPUSeconds        int64 `json:"gpu_seconds"`
}

// usageText is a row as the outbox and the statements have it.
type usageText struct {
	ID string `json:"usage_id"`
	Usage
	Hour         string `json:"hour"`
	CoveredFrom  string `json:"covered_from"`
	CoveredUntil string `json:"covered_until"`
}

// ID names the piece: by cluster, namespace and when it began. Sent again it is the same row.
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
	for len(rows) > 0 {
		batch, rest, err := s.usageBatch(rows)
		if err != nil {
			return added, err
		}
		result, err := s.db.ExecContext(ctx, s.text.usageInsert, s.arguments(batch)...)
		if err != nil {
			return added, fmt.Errorf("appending %d hours to %s%s: %w", batch.rows, s.options.Table, usageSuffix, err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return added, fmt.Errorf("counting what was appended to %s%s: %w", s.options.Table, usageSuffix, err)
		}
		added += n
		rows = rest
	}
	return added, nil
}

// usageBatch is as much as one statement may hold, and the rest. It is bounded by hours, for that is what the table is
// partitioned by.
func (s *Store) usageBatch(rows []Usage) (b batch, rest []Usage, err error) {
	var array bytes.Buffer
	b.from, b.until = rows[0].Hour, rows[0].Hour
	for b.rows < min(len(rows), s.options.MaxRows) {
		u := rows[b.rows]
		row, err := u.row()
		if err != nil {
			return b, nil, err
		}
		if b.rows > 0 && array.Len()+len(row)+2 > s.options.MaxBytes {
			break
		}
		array.WriteByte("[,"[min(b.rows, 1)])
		array.Write(row)
		if u.Hour.Before(b.from) {
			b.from = u.Hour
		}
		if u.Hour.After(b.until) {
			b.until = u.Hour
		}
		b.rows++
	}
	b.json = array.String() + "]"
	return b, rows[b.rows:], nil
}
