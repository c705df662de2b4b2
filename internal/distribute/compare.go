package distribute

import (
	"reflect"
)

// Identical says whether an unrelated object holds what the template does: equal data, binaryData, type and immutable, or
// for other kinds everything but metadata and status.
func (t *Template) Identical(object map[string]any) bool {
	return reflect.DeepEqual(contentOf(t.object), contentOf(object))
}

// Holds says whether a copy still holds all that the template says. What it holds beyond, and nobody owns, mutating
// admission added.
func (t *Template) Holds(object map[string]any, foreign bool) bool {
	if foreign {
		return t.Identical(object)
	}
	return isWithin(contentOf(object), contentOf(t.object))
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

// isWithin says whether all of wanted stands in there, too.
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
