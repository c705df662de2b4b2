package distribute

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestARefusalIsAboutTheObjectThatWasThere(t *testing.T) {
	c := newCluster(t, "d0")
	c.stranger("d0", "theirs")
	c.refuse = func(verb Verb, _ copies.Slot) error {
		if verb != Overwrite {
			return nil
		}
		c.refuse = nil
		c.remove("d0/settings") // before the answer comes, the watch shows another object
		c.stranger("d0", "other")
		c.showAll()
		return immutable
	}
	c.distribute("new", conflictPolicy(v1alpha1.ConflictOverwrite))
	c.settle(time.Hour)
	if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
		t.Errorf("the object that came later is not overwritten: %s %v", diff, c.status().ConflictingNamespaces)
	}
}
