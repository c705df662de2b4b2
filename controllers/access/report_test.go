package access

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
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
