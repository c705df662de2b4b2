package distribute

import (
	"reflect"
)

// Identical reports whether an unrelated object has the template's content: everything but apiVersion, kind, metadata
// and status, where an empty field counts as absent.
func (t *Template) Identical(object map[string]any) bool {
	return reflect.DeepEqual(contentOf(t.object), contentOf(object))
}

// Holds reports whether a copy still has all of the template's content. It may have further fields, because the API
// server and mutating admission set defaults. But it must have nothing else if it is a Secret or ConfigMap, or if
// another field manager owns content (foreign).
func (t *Template) Holds(object map[string]any, foreign bool) bool {
	if foreign || t.holdsData() {
		return t.Identical(object)
	}
	return isWithin(contentOf(object), contentOf(t.object))
}

// holdsData reports whether the template is a Secret or a ConfigMap. The API server stores these as it gets them.
func (t *Template) holdsData() bool {
	return t.Kind.Group == "" && (t.Kind.Kind == "Secret" || t.Kind.Kind == "ConfigMap")
}

func contentOf(object map[string]any) map[string]any {
	c := map[string]any{}
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if !isEmpty(value) {
				c[key] = value
			}
		}
	}
	return c
}

// isWithin reports whether the object there has all fields of the object wanted, with equal values.
func isWithin(there, wanted map[string]any) bool {
	for key, value := range wanted {
		if inner, ok := value.(map[string]any); ok {
			have, _ := there[key].(map[string]any)
			if !isWithin(have, inner) {
				return false
			}
			continue
		}
		if !reflect.DeepEqual(there[key], value) {
			return false
		}
	}
	return true
}
