package distribution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

func TestDeedsAreToldOnce(t *testing.T) {
	d := &deeds{}
	d.note(distribute.Create, "d0") // nobody misses or looks for anything
	d.note(distribute.Delete, "d1")
	d.note(distribute.HandBack, "d2")
	first := d.takeAll()
	if diff := cmp.Diff(map[v1alpha1.Reason][]string{v1alpha1.ReasonRemoved: {"d1", "d2"}}, first); diff != "" {
		t.Error(diff)
	}
	d.note(distribute.Delete, "d3")
	d.note(distribute.Adopt, "d4")
	d.putBack(first)
	want := map[v1alpha1.Reason][]string{v1alpha1.ReasonRemoved: {"d1", "d2", "d3"}, v1alpha1.ReasonAdopted: {"d4"}}
	if diff := cmp.Diff(want, d.takeAll()); diff != "" {
		t.Error(diff)
	}
	if all := d.takeAll(); len(all) != 0 {
		t.Errorf("got %v a second time, want nothing", all)
	}
	d.putBack(nil)
	d.note(distribute.Overwrite, "d5")
	if diff := cmp.Diff(map[v1alpha1.Reason][]string{v1alpha1.ReasonOverwrote: {"d5"}}, d.takeAll()); diff != "" {
		t.Error(diff)
	}
}
