package access

import (
	"iter"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/test/build"
)

// A suspended account on two lists is reported once.
func TestListFindings(t *testing.T) {
	const why = "ServiceAccount ci/deployer is suspended"
	seen := &facts{own: true}
	seen.input.Refused = []grants.Refusal{{List: grants.ListUsers, Why: why}, {List: grants.ListSudoers, Why: why},
		{List: grants.ListUsers, Why: "another"}}
	found := listFindings(build.Tenant("shop").Object(), seen, &outcome{})
	if len(found) != 2 || found[0].message != why || found[1].message != "another" {
		t.Errorf("found %+v", found)
	}
}

func TestJoinFindings(t *testing.T) {
	t.Run("ACC-R33 a message of many findings stands in the condition as it was joined, so a pass finds it again", func(t *testing.T) {
		message := joinFindings(slices.Repeat([]finding{{message: strings.Repeat("ß", 100)}}, 50))
		var conditions []metav1.Condition
		v1alpha1.SetCondition(&conditions, 1, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict, message)
		if conditions[0].Message != message {
			t.Errorf("%d bytes became %d", len(message), len(conditions[0].Message))
		}
	})
}

// FLT-F22: the API server accepts no new objects in a root that is being deleted. So the operator tries none, and the condition gives the
// reason.
func TestEndingRoot(t *testing.T) {
	tenant := build.Tenant("shop").Users("ann").Object()
	seen := &facts{own: true, ending: true, objects: grants.For(tenant, grants.Facts{})}
	for _, step := range grants.PlanFor("shop", seen.objects, seen.withheldGrants(), grants.Actual{}).Steps {
		if step.Desired.GetNamespace() != "" {
			t.Errorf("%s %s is tried", step.Verb, grants.KeyOf(step.Desired))
		}
	}
	if found := listFindings(tenant, seen, &outcome{}); len(found) != 1 || found[0].reason != v1alpha1.ReasonNamespaceNotReady ||
		found[0].retry {
		t.Errorf("found %+v", found)
	}
}

// seenCopies answers with troubles; they are known.
type seenCopies struct {
	known    bool
	troubles []copies.Trouble
}

func (s seenCopies) Known(string) bool                          { return s.known }
func (s seenCopies) Troubles(iter.Seq[string]) []copies.Trouble { return s.troubles }

func TestCopiesOfRightsThatAreMissing(t *testing.T) {
	conflict := func(namespace, name, from string) copies.Trouble {
		return copies.Trouble{Slot: copies.Slot{Kind: copies.RoleBindingKind, Namespace: namespace, Name: name}, From: from,
			Reason: v1alpha1.ReasonConflict, Text: "an object has the name"}
	}
	shop := &v1alpha1.LNamespace{}
	shop.Name = "shop"
	for name, c := range map[string]struct {
		troubles []copies.Trouble
		want     string
	}{
		"ACC-R43 AccessReady names the namespace where another object has the name of the users' RoleBinding": {
			[]copies.Trouble{conflict("shop-web", grants.UsersBinding, "shop")},
			"the lists give no right where a copy of a RoleBinding is missing: RoleBinding warren:users in namespace shop-web " +
				"(an object has the name)"},
		"ACC-R43 AccessReady does not name conflicts of a user's own RoleBinding, or of a template's": {
			[]copies.Trouble{conflict("shop-web", "deployers", "shop"), conflict("shop", grants.UsersBinding, "base")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &facts{own: true}
			seen.findUncopied(seenCopies{true, c.troubles}, trees{}, shop)
			got := ""
			for _, f := range listFindings(shop, seen, &outcome{}) {
				got += string(f.reason) + " " + f.message
			}
			if want := c.want; got != want && got != "Conflict "+want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	t.Run("ACC-R43 a report of missing copies stays after a start until the copies are known", func(t *testing.T) {
		r, told := &Reconciler{Timing: DefaultTiming()}, shop.DeepCopy()
		for _, step := range []struct{ before, known, early bool }{{false, false, false}, {true, false, true}, {true, true, false}} {
			if step.before {
				v1alpha1.SetCondition(&told.Status.Conditions, 1, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict, "x")
			}
			seen := &facts{own: true}
			seen.findUncopied(seenCopies{known: step.known}, trees{}, told)
			if _, isEarly := r.putOffReport("shop", seen, &outcome{}); isEarly != step.early {
				t.Errorf("%+v: early %t", step, isEarly)
			}
		}
	})
}
