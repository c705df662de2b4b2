package distribution

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// secretIn is Secret s in a namespace.
func secretIn(namespace string) copies.Slot {
	return copies.Slot{Kind: secrets.GroupKind(), Namespace: namespace, Name: "s"}
}

// copyIn is the metadata of a copy of Secret s that distribution by has made.
func copyIn(namespace, by, uid, resourceVersion string) *metav1.PartialObjectMetadata {
	hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(secretIn(namespace), by), Content: "00000000000000000000000000000000"}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "s", UID: types.UID(uid), ResourceVersion: resourceVersion,
		Labels:      map[string]string{v1alpha1.LabelDistributedBy: by},
		Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
	}}
}

func newTestTable() *copyTable {
	return newCopyTable(func(namespace string) string { return namespace })
}

func TestCopyTableKeepsWhatIsNewest(t *testing.T) {
	table, gk := newTestTable(), secrets.GroupKind()
	if keys := table.putCopy(gk, copyIn("d1", "rd", "u1", "7")); len(keys) != 1 || keys[0] != (key{"rd", "d1"}) {
		t.Fatalf("got %v, want the key of who wrote the copy", keys)
	}
	if keys := table.putCopy(gk, copyIn("d1", "rd", "u1", "6")); len(keys) != 0 {
		t.Errorf("got %v for an older version, want nothing", keys)
	}
	if keys := table.removeCopy(gk, copyIn("d1", "rd", "other", "8")); len(keys) != 0 {
		t.Errorf("got %v: another object of that name has gone", keys)
	}
	table.noteAnswer(secretIn("d1"), copyIn("d1", "rd", "u1", "9"), true)
	if one := table.find(secretIn("d1")); one == nil || one.ResourceVersion != "9" || !one.Known || !one.Ours {
		t.Errorf("got %+v, want the answer to our write", one)
	}
	if keys := table.removeCopy(gk, copyIn("d1", "rd", "u1", "10")); len(keys) != 1 {
		t.Errorf("got %v, want the key of the copy that has gone", keys)
	}
	table.noteAnswer(secretIn("d1"), copyIn("d1", "rd", "u1", "9"), true)
	if one := table.find(secretIn("d1")); one != nil {
		t.Errorf("got %+v: the watch has been beyond this answer, and has seen the copy go", one)
	}
}

func TestCopyTableTellsAllWhoWantThePlace(t *testing.T) {
	table, of := newTestTable(), distribute.FamilyOf(secretIn(""))
	table.want(of, "rd")
	table.want(of, "other")
	if keys := table.putCopy(secrets.GroupKind(), copyIn("d1", "rd", "u1", "1")); len(keys) != 2 {
		t.Errorf("got %v, want the keys of both", keys)
	}
	if freed := table.noteAnswer(secretIn("d1"), copyIn("d1", "rd", "u1", "2"), true); len(freed) != 2 {
		t.Errorf("got %v, want both: what stood in their way before does no longer", freed)
	}
	table.unwant(of, "other")
	if keys := table.noteAbsent(secretIn("d1"), "u1"); len(keys) != 1 || keys[0] != (key{"rd", "d1"}) {
		t.Errorf("got %v, want the key of who wrote the copy", keys)
	}
	if keys := table.noteAbsent(secretIn("d1"), "u1"); len(keys) != 0 || len(table.findFamily(of)) != 0 {
		t.Errorf("got %v for what is gone, want nothing", keys)
	}
}

func TestCopyTableReplace(t *testing.T) {
	table, gk := newTestTable(), secrets.GroupKind()
	table.putCopy(gk, copyIn("d1", "rd", "u1", "1"))
	table.putCopy(gk, copyIn("d2", "rd", "u2", "2"))
	keys := table.replaceCopies(gk, []*metav1.PartialObjectMetadata{copyIn("d2", "rd", "u2", "2"), copyIn("d3", "more", "u3", "3")})
	if len(keys) != 2 || table.find(secretIn("d1")) != nil || table.find(secretIn("d3")) == nil {
		t.Errorf("got %v, want the keys of d1, which is gone, and of d3, which is new", keys)
	}
	if names := table.findWriters(&gk); len(names) != 2 || !names["rd"] || !names["more"] {
		t.Errorf("got %v, want both distributions", names)
	}
	if all := table.findIn("d2", "more"); len(all) != 0 {
		t.Errorf("got %v, want none: the copy is that of rd", all)
	}
}

func TestCopyTableNotesWhatWasReadOfOneVersion(t *testing.T) {
	table, slot := newTestTable(), secretIn("d1")
	table.putCopy(secrets.GroupKind(), copyIn("d1", "rd", "u1", "1"))
	table.noteInspected(slot, "u1", "0", false)
	if table.find(slot).Known {
		t.Error("what was read of another version counts")
	}
	table.noteInspected(slot, "u1", "1", true)
	if one := table.find(slot); !one.Known || one.Drifted {
		t.Errorf("got %+v, want a copy that is known to hold what it should", one)
	}
	table.forgetInspected(slot)
	if table.find(slot).Known {
		t.Error("the copy is not read again")
	}
	table.noteInspected(slot, "u1", "1", false)
	table.forgetInspected(slot)
	if one := table.find(slot); !one.Known || !one.Drifted {
		t.Errorf("got %+v, want a copy that is known to have drifted, whoever asks again", one)
	}
	table.noteDeleted(slot, "other")
	if table.find(slot).Terminating {
		t.Error("another object was deleted")
	}
	table.noteDeleted(slot, "u1")
	if !table.find(slot).Terminating {
		t.Error("the copy is not known to be going")
	}
}

func TestCopyTableFindsFarewells(t *testing.T) {
	table, adopted := newTestTable(), copyIn("d1", "rd", "u1", "1")
	adopted.Annotations[v1alpha1.AnnotationAdopted] = v1alpha1.True
	table.putCopy(secrets.GroupKind(), adopted)
	table.putCopy(secrets.GroupKind(), copyIn("d2", "rd", "u2", "2"))
	if keys := table.findFarewells("rd"); len(keys) != 1 || keys[0] != (key{"rd", "d1"}) {
		t.Errorf("got %v, want the object that was there before the distribution, and no other", keys)
	}
}
