package budget

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Told is what a share tells whoever may read it of the limits above it: for each resource, the hard limit and the use of that limit which
// has least free, at a time. Many who may read the share may read neither the limit nor the LNamespace.
type Told struct {
	At   time.Time           `json:"at"`
	Used corev1.ResourceList `json:"used"`
	Hard corev1.ResourceList `json:"hard"`
}

// Tell returns the JSON of what the share of a row tells. used are the sums of limits.
func Tell(row *Row, limits []Limit, used []Sum, now time.Time) string {
	hard, taken := Amounts{}, Amounts{}
	for _, l := range row.Under {
		for key, most := range limits[l].Hard {
			if before, ok := hard[key]; !ok || most-used[l].Used[key] < before-taken[key] {
				hard[key], taken[key] = most, used[l].Used[key]
			}
		}
	}
	text, _ := json.Marshal(Told{now.UTC().Truncate(time.Second), taken.List(), hard.List()}) // of plain fields: it can't fail
	return string(text)
}

// ReadTold reads what a share tells; nil if it tells nothing that can be read.
func ReadTold(text string) *Told {
	told := &Told{}
	if text == "" || json.Unmarshal([]byte(text), told) != nil {
		return nil
	}
	return told
}
