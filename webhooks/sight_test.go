package webhooks_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// An answer names only namespaces that alice may read. She may read none, some or all of them.
func TestSight(t *testing.T) {
	const (
		subs, roots, hierarchies, namespaces = webhooks.PathSubNamespaces, webhooks.PathLNamespaces, webhooks.PathHierarchyConfiguration,
			webhooks.PathNamespaces
		seesMine = "get namespaces mine"
	)
	waiting := func() *cluster {
		return grown(build.Root("payments"), build.Child("mine", "gone"), build.Child("secret-1", "gone"), build.Child("secret-2", "gone"))
	}
	crowd := func() *cluster {
		return grown(build.Root("payments"), bound("web", "payments"), bound("mine", "web"), bound("secret-1", "web"),
			build.Child("secret-2", "web"))
	}
	mixed := func() *cluster {
		return grown(build.Root("web"), build.Child("mine", "web"), build.Child("secret-1", "web"), build.Child("secret-2", "web"))
	}
	full := func() *cluster {
		return grown(tenant(build.Tenant("shop").Limits(1, 3))...).with(bound("secret-1", "shop"), build.Namespace("solo"))
	}
	stale := func() *cluster {
		return grown(build.Root("secret-1"), build.Child("shop", "secret-1"), build.Namespace("solo"))
	}
	below := build.Hierarchy("solo", build.Below("shop"))
	cases := map[string]struct {
		path     string
		c        *cluster
		old, now client.Object
		want     answered
		hidden   []string
	}{
		"SEC-W33 a new SubNamespace whose name namespaces wait for: a user who may get none reads no name and no count": {
			subs, waiting().blind(), nil, build.SubNamespace("payments", "gone"),
			refused(403, `namespaces that you may not see wait for a parent named "gone"`), []string{"mine", "secret", "more"}},
		"SEC-W33 a user who may get one of them reads that name, and `and others that you may not see`": {
			subs, waiting().blind().allowing(seesMine), nil, build.SubNamespace("payments", "gone"),
			refused(403, `namespaces mine and others that you may not see wait for a parent`), []string{"secret", "more"}},
		"SEC-W33 a new LNamespace of such a name: no name and no count": {
			roots, waiting().blind(), nil, sudoed("gone"), refused(403, "namespaces that you may not see wait"),
			[]string{"mine", "secret"}},
		"SEC-W33 a user who may get all of them reads all names": {subs, waiting(), nil, build.SubNamespace("payments", "gone"),
			refused(403, "namespaces mine, secret-1, secret-2 wait"), nil},
		"SEC-W33 a SubNamespace with bound and unbound children is deleted: the refusal and the Warning name only children that the user " +
			"may get": {subs, crowd().blind().allowing(seesMine), build.SubNamespace("payments", "web"), nil,
			refused(403, "web has sub-namespaces (mine and others that you may not see)").
				warning("halted until they have a parent again: some that you may not see"), []string{"secret"}},
		"SEC-W33 so does the answer to the deletion of its namespace": {namespaces, crowd().blind(), bound("web", "payments"), nil,
			refused(403, "web has sub-namespaces (some that you may not see)").warning("some that you may not see"), []string{"mine", "secret"}},
		"SEC-W33 type is removed from a root with children: the answer has no name and no count": {
			namespaces, mixed().blind(), build.Root("web"), build.Namespace("web"),
			refused(403, "web has children (some that you may not see)"), []string{"mine", "secret", "3"}},
		"SEC-W33 a user who may get one of these children reads that name, without a count": {
			namespaces, mixed().blind().allowing(seesMine), build.Root("web"), build.Namespace("web"),
			refused(403, "web has children (mine and others that you may not see)"), []string{"secret", "3"}},
		"SEC-W33 a user who may get all of these children reads all names and their count": {
			namespaces, mixed(), build.Root("web"), build.Namespace("web"),
			refused(403, "web has 3 children (mine, secret-1, secret-2)"), nil},
		"SEC-W33 type is removed from a template that is referenced: the answer names none of the namespaces": {
			namespaces, grown(build.Template("base"), build.Namespace("secret-1", v1alpha1.LabelTemplate, "base")).
				blind(), build.Template("base"), build.Namespace("base"), refused(403, "base is referenced by: some that you may not see"),
			[]string{"secret"}},
		"SEC-W33 a label is propagated that namespaces below have with another value: the answer has neither their names nor the value": {
			hierarchies, grown(build.Root("web", "cost", "1"), build.Child("secret-1", "web", "cost", "8")).blind(),
			nil, build.Hierarchy("web", build.Propagating("cost")), refused(422, "labels would be replaced: some that you may not see"),
			[]string{"secret", "8"}},
		"SEC-W33 spec.parent of a namespace that may not leave is cleared: the answer does not name the root": {
			hierarchies, stale().blind(), below, build.Hierarchy("solo"),
			refused(403, "needs update on hierarchyconfigurations in a namespace that you may not see (root of the current tree)"),
			[]string{"secret"}},
		"SEC-W33 a user who may see that root reads its name": {hierarchies, stale(), below, build.Hierarchy("solo"),
			refused(403, `in namespace "secret-1" (root of the current tree)`), nil},
		"SEC-W34 spec.parent names a tenant at its limit that the user may not see: 403, needs update in namespace shop (proposed parent), " +
			"without the limit": {hierarchies, full().blind(), nil, below,
			refused(403, `needs update on hierarchyconfigurations in namespace "shop" (proposed parent)`), []string{"allows", "in use", "depth"}},
		"SEC-W34 a user who may see the parent gets 422 with the limit": {
			hierarchies, full(), nil, below, refused(422, "tenant shop allows 1 sub-namespaces (1 in use)"), nil},
		"SEC-W34 so does a user with rights over both namespaces": {
			hierarchies, full().blind().allowing("update hierarchyconfigurations shop/hierarchy", "* * solo"), nil,
			below, refused(422, "tenant shop allows 1 sub-namespaces (1 in use)"), nil},
		"SEC-W34 a parent that is a template has the same 403": {
			hierarchies, grown(build.Template("shop"), build.Namespace("solo")).blind(), nil, below,
			refused(403, `in namespace "shop" (proposed parent)`), []string{"template"}},
		"SEC-W34 a terminating parent has the same 403": {
			hierarchies, grown(ending(build.Root("shop")), build.Namespace("solo")).blind(), nil, below,
			refused(403, `in namespace "shop" (proposed parent)`), []string{"terminated"}},
		"SEC-W34 a plain parent has the same 403": {hierarchies, grown(build.Namespace("shop"), build.Namespace("solo")).blind(), nil, below,
			refused(403, `in namespace "shop" (proposed parent)`), []string{"yet"}},
		"SEC-W34 a missing parent has the same 403": {hierarchies, grown(build.Namespace("solo")).blind(), nil, below,
			refused(403, `in namespace "shop" (proposed parent)`), []string{"exist"}},
		"SEC-W34 an LNamespace with the name of a marked namespace is refused: `exists`, without the mark": {
			roots, grown(noted(build.Namespace("shop"), v1alpha1.AnnotationAdopt, "true")).blind(), nil, sudoed("shop"),
			refused(403, "namespace shop exists; a cluster admin can name who may adopt it"), []string{"adopt=true"}},
		"SEC-W34 an LNamespace with the name of a terminating namespace is refused: `exists`, without its state": {
			roots, grown(ending(build.Root("shop"))).blind(), nil, sudoed("shop"),
			refused(403, "namespace shop exists; a cluster admin can name who may adopt it"), []string{"terminated"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := tc.c.as(t, alice, tc.path, tc.old, tc.now)
			tc.want.check(t, "", response)
			if response.Allowed || response.Result.Details == nil {
				t.Fatalf("answered %+v", response)
			}
			said := response.Result.Message + "\n" + strings.Join(response.Warnings, "\n")
			for _, cause := range response.Result.Details.Causes {
				said += "\n" + cause.Message
			}
			for _, word := range tc.hidden {
				if strings.Contains(said, word) {
					t.Errorf("%q is told: %s", word, said)
				}
			}
		})
	}
}

// However many namespaces an answer would name, the authorizer gets only a limited number of questions.
func TestSightIsBounded(t *testing.T) {
	t.Run("SEC-W33 with 200 children, the answer costs at most 51 questions to the authorizer", func(t *testing.T) {
		objects := []client.Object{build.Root("web")}
		for i := range 200 {
			objects = append(objects, build.Child("secret-"+strings.Repeat("x", i+1)[:min(i+1, 50)]+string(rune('a'+i%26))+string(rune('a'+i/26)),
				"web"))
		}
		c := grown(objects...).blind()
		response := c.as(t, alice, webhooks.PathNamespaces, build.Root("web"), build.Namespace("web"))
		if said := response.Result.Message; strings.Contains(said, "secret") {
			t.Errorf("told: %s", said)
		}
		if c.reviews.Load() > 51 {
			t.Errorf("asked %d questions, want 51 at most", c.reviews.Load())
		}
	})
}
