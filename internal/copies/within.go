package copies

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Within says whether all that b writes stands in found, too, with the same values. found may hold more: mutating
// admission adds keys that no manager owns, and an identical PUT would not take them away (PROP-F7).
func (b *Body) Within(found *Body) bool {
	if !bytes.Equal(b.head, found.head) || !subset(b.labels, found.labels) || !subset(b.annotations, found.annotations) {
		return false
	}
	var wanted, there any
	if json.Unmarshal(b.rest, &wanted) != nil || json.Unmarshal(found.rest, &there) != nil {
		return false
	}
	return holds(there, wanted)
}

func subset(wanted, there map[string]string) bool {
	for key, value := range wanted {
		if got, ok := there[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// holds says whether there equals wanted but for more keys in its maps.
func holds(there, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		m, ok := there.(map[string]any)
		for key, value := range wanted {
			got, has := m[key]
			if ok = ok && has && holds(got, value); !ok {
				return false
			}
		}
		return ok
	case []any:
		list, ok := there.([]any)
		if !ok || len(list) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !holds(list[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(there, wanted)
}
