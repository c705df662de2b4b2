package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// lnamespaceBy returns an LNamespace that another user made. It has the label of a migration, which any user may write.
func lnamespaceBy(name, creator string) *v1alpha1.LNamespace {
	lns := &v1alpha1.LNamespace{}
	lns.Name, lns.UID, lns.Labels = name, "uid of LNamespace", map[string]string{v1alpha1.LabelCreatedBy: madeHere}
	if creator != "" {
		lns.Annotations = map[string]string{v1alpha1.AnnotationCreator: creator}
	}
	return lns
}

// Any user may write Capsule's label, so the label alone places no namespace, neither before the last step nor after
// it.
func TestLabelAlonePlacesNothing(t *testing.T) {
	s := capsuleSite()
	s.apply(t, Finish, s.plan, 1000)
	s.followCapsule()
	s.Namespaces["late"] = namespace("late", capsuleTenant, "oil")
	if plan := s.plan(); !s.Peer.Record.isMigrationFinished() || len(plan.Steps) > 0 {
		t.Errorf("steps for a stranger with the label: %+v", plan.Steps)
	}
	if got := slices.Sorted(maps.Keys(s.estate(s.Cluster).Places)); !slices.Equal(got, []string{"gas", "gas-lab", "oil-dev", "oil-prod"}) {
		t.Errorf("places: %v", got)
	}
}

func TestOwnershipIsByUID(t *testing.T) {
	s := capsuleSite()
	s.Namespaces["oil-dev"].OwnerReferences[0].UID = "of a Tenant before"
	s.Namespaces["gas-lab"].OwnerReferences = append(s.Namespaces["gas-lab"].OwnerReferences, s.Namespaces["oil-prod"].OwnerReferences...)
	e := s.estate(s.Cluster)
	if got := slices.Sorted(maps.Keys(e.Places)); !slices.Equal(got, []string{"gas", "oil-prod"}) {
		t.Errorf("places: %v", got)
	}
	if !slices.ContainsFunc(e.Gaps, func(g Gap) bool {
		return g.What == "Namespace gas-lab" && strings.Contains(g.Instead, "several Tenants own it")
	}) {
		t.Errorf("gaps: %+v", e.Gaps)
	}
}

// If another user makes an LNamespace with a Tenant's name before the migration does, that LNamespace gets none of the
// Tenant's namespaces.
func TestForeignLNamespaceStopsTheMigration(t *testing.T) {
	s := capsuleSite()
	x := &executor{tenants: slices.Sorted(maps.Keys(s.estate(s.Cluster).Tenants))}
	if err := x.lostTenant(s.estate(s.Cluster)); err != nil {
		t.Fatal(err)
	}
	s.LNamespaces["oil"] = lnamespaceBy("oil", "eve")
	if err := x.lostTenant(s.estate(s.Cluster)); err == nil || !strings.Contains(err.Error(), "its creator is not known to be you") {
		t.Errorf("the run goes on: %v", err)
	}
	if place, placed := s.estate(s.Cluster).Places["oil-dev"]; placed {
		t.Errorf("oil-dev is placed: %+v", place)
	}
}

// If a Tenant's own namespace is to be the root, its LNamespace is made in the last step. Another user may have made
// one before.
func TestForeignLNamespaceOfAPlacedRootLetsUndoAlone(t *testing.T) {
	s := capsuleSite()
	before := s.everything()
	s.apply(t, Hierarchy, s.plan, 1000)
	s.LNamespaces["gas"] = lnamespaceBy("gas", "eve")
	if plan := s.plan(); len(plan.Steps) > 0 {
		t.Errorf("steps: %+v", plan.Steps)
	}
	if _, err := planOn(s.estate(s.Cluster), s.Cluster); err == nil || !strings.Contains(err.Error(), "its creator is not known to be you") {
		t.Errorf("the plan goes on: %v", err)
	}
	s.apply(t, "", func() Plan { plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster); return plan }, 1000)
	if s.LNamespaces["gas"] == nil {
		t.Fatal("undoing has deleted somebody's LNamespace")
	}
	delete(s.LNamespaces, "gas")
	if diff := cmp.Diff(before, s.everything()); diff != "" {
		t.Errorf("undone (-before +after):\n%s", diff)
	}
}

// An LNamespace that owns its root and has all of the Tenant's namespaces in its tree would get nothing more, so the
// migration may go on.
func TestLNamespaceThatHoldsAllIsTaken(t *testing.T) {
	s := capsuleSite()
	s.LNamespaces["oil"] = lnamespaceBy("oil", "eve")
	s.Namespaces["oil"] = namespace("oil", v1alpha1.LabelType, "root", "@"+v1alpha1.AnnotationLNamespaceUID, "uid of LNamespace")
	s.Namespaces["oil-dev"].Labels[v1alpha1.LabelParent] = "oil"
	if e := s.estate(s.Cluster); e.Stop == "" {
		t.Error("one of two is placed there, and the other follows")
	}
	s.Namespaces["oil-prod"].Labels[v1alpha1.LabelParent] = "oil"
	if e := s.estate(s.Cluster); e.Stop != "" || e.Places["oil-prod"].Parent != "oil" {
		t.Errorf("stop %q, places %v", e.Stop, e.Places)
	}
}

func TestProvisioners(t *testing.T) {
	named := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rbac": map[string]any{"provisioner": "makers"}}}}
	roles := provisionersIn([]unstructured.Unstructured{named, {Object: map[string]any{}}})
	if diff := cmp.Diff([]string{capsuleProvisioner, "makers"}, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	binding := func(kind, namespace, refKind, role string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{"kind": kind, "roleRef": map[string]any{"kind": refKind, "name": role},
			"subjects": []any{map[string]any{"name": "bot"}}}}
		u.SetNamespace(namespace)
		u.SetName(role)
		return u
	}
	var found []string
	for _, g := range grantsAmong([]unstructured.Unstructured{
		binding("ClusterRoleBinding", "", "ClusterRole", "makers"), binding("RoleBinding", "oil-dev", "ClusterRole", capsuleProvisioner),
		binding("RoleBinding", "oil-dev", "Role", "makers"), binding("ClusterRoleBinding", "", "ClusterRole", "view"),
	}, roles) {
		found = append(found, objectFromMetadata(g.PartialObjectMetadata).String())
	}
	if diff := cmp.Diff([]string{"ClusterRoleBinding makers", "RoleBinding oil-dev/" + capsuleProvisioner}, found); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

// The right to patch a namespace isn't copied from the root to the namespaces below, whoever has it.
func TestProvisionersRoleIsNotKept(t *testing.T) {
	s := capsuleSite()
	s.Peer.GrantRoles = []string{capsuleProvisioner, "makers"}
	oil := tenantObject("oil", map[string]any{
		"owners": []any{owner("ServiceAccount", "system:serviceaccount:oil-dev:robot", capsuleProvisioner, "makers",
			capsuleDeleter)},
		"additionalRoleBindings": []any{map[string]any{"clusterRoleName": "makers",
			"subjects": []any{map[string]any{"kind": "User", "name": "eve"}}}},
	})
	withheld := ownedBy(object(roleBindings, "oil-dev", "promoted", capsuleBinding, "x"), "oil")
	found := Capsule{Tenants: []unstructured.Unstructured{oil},
		Replicas: []unstructured.Unstructured{bindingObject(withheld, bindingOfCapsule{ClusterRoleName: "makers"})}}
	e := EstateOfCapsule(found, s.Cluster, ourRules{configfile.Default(), "warren-system"})
	if len(e.Made) > 0 || len(e.Copies) > 0 {
		t.Errorf("sources %v, copies %v", e.Made, e.Copies)
	}
	for _, o := range e.Owned {
		if o.Name == "promoted" {
			t.Error("it stays when the Tenant goes")
		}
	}
}

func TestGrantsThatCannotBeWithheld(t *testing.T) {
	crb, rb := object(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "", "makers"), object(roleBindings, "oil-dev", "promoted")
	someone := []any{map[string]any{"name": "bot"}}
	for name, c := range map[string]struct {
		grants []Grant
		policy string
		wanted int64
		want   string
	}{
		"as it should be": {[]Grant{{crb, someone}}, failurePolicyFail, 1, ""},
		"no binding":      {nil, failurePolicyFail, 1, "no ClusterRoleBinding of Capsule's provisioner was found"},
		"none but in a namespace": {[]Grant{{rb, someone}}, failurePolicyFail, 1,
			"no ClusterRoleBinding of Capsule's provisioner was found"},
		"webhook lets pass": {[]Grant{{crb, someone}}, failurePolicyIgnore, 1,
			"webhook namespaces.peer of ValidatingWebhookConfiguration peer has failurePolicy Ignore: set failurePolicy Fail first"},
		"webhook lets pass, none is left": {[]Grant{{crb, nil}}, failurePolicyIgnore, 1, ""},
		"webhook lets pass, at rest":      {[]Grant{{crb, someone}}, failurePolicyIgnore, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := capsuleSite()
			s.Peer.GrantRoles, s.Peer.Grants, s.Peer.Deployments[0].Wanted, s.Peer.Webhooks[0].Policies[0] = []string{"makers"}, c.grants, c.wanted,
				c.policy
			err := (&options{apply: true, peerNamespace: "peer"}).checkPlanFeasible(capsulePeer, s.Cluster, Plan{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestGuardsAreWebhooksOnNamespaces(t *testing.T) {
	webhook := func(name, resource, scope string) any {
		return map[string]any{"name": name, "rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{resource}, "scope": scope}}}
	}
	w := unstructured.Unstructured{Object: map[string]any{"webhooks": []any{
		webhook("a", "namespaces", "*"), webhook("b", "pods", "*"), webhook("c", "*", "*"), webhook("d", "*", "Namespaced"),
		webhook("e", "namespaces/status", "Cluster"),
	}}}
	if diff := cmp.Diff([]string{"a", "", "c", "", "e"}, namespaceGuardNames(w)); diff != "" {
		t.Errorf("guards (-want +got):\n%s", diff)
	}
	others, guards := Webhooks{Policies: []string{"Fail", "Fail"}, AtRest: []string{"Ignore", "Ignore"},
		Guards: []string{"a", ""}}.splitByGuardWave()
	if diff := cmp.Diff([][]string{{"Fail", "Ignore"}, {"Ignore", "Fail"}}, [][]string{others, guards}); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
}
