package copies_test

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/copies"
)

func TestWithin(t *testing.T) {
	type object = map[string]any
	render := func(labels, data object, list ...any) *copies.Body {
		b, err := copies.Render(copies.Slot{Namespace: "acme", Name: "w"}, object{
			"apiVersion": "v1", "kind": "Widget", "metadata": object{"labels": labels}, "data": data, "list": list,
		}, copies.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	app, item := object{"app": "x"}, object{"x": "1"}
	wanted := render(app, object{"a": "1"}, item)
	for name, c := range map[string]struct {
		found *copies.Body
		want  bool
	}{
		"equal":               {render(app, object{"a": "1"}, item), true},
		"a key more":          {render(app, object{"a": "1", "b": "2"}, object{"x": "1", "y": "2"}), true},
		"a label more":        {render(object{"app": "x", "more": "y"}, object{"a": "1"}, item), true},
		"a key less":          {render(app, object{}, item), false},
		"another value":       {render(app, object{"a": "2"}, item), false},
		"a longer list":       {render(app, object{"a": "1"}, item, item), false},
		"another label value": {render(object{"app": "y"}, object{"a": "1"}, item), false},
		"a label less":        {render(object{}, object{"a": "1"}, item), false},
	} {
		if got := wanted.Within(c.found); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
