package ui

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNoteUnread(t *testing.T) {
	namespaces, broken := schema.GroupResource{Resource: "namespaces"}, errors.New("broken")
	for name, c := range map[string]struct {
		err, left error
		want      []string
	}{
		"no error":  {nil, nil, nil},
		"forbidden": {apierrors.NewForbidden(namespaces, "x", errors.New("no right")), nil, []string{"you may not read namespace x"}},
		"not found": {apierrors.NewNotFound(namespaces, "x"), nil, []string{`can't read namespace x: namespaces "x" not found`}},
		"another":   {broken, broken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var unread []string
			if err := noteUnread(&unread, "read namespace x", c.err); !errors.Is(err, c.left) {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, unread); diff != "" {
				t.Error(diff)
			}
		})
	}
}
