package webhooks_test

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

const (
	admOrg    = "update hierarchyconfigurations org/hierarchy"
	admTeamA  = "update hierarchyconfigurations team-a/hierarchy"
	clusterly = "update namespaces"
)

func TestHierarchyConfigurations(t *testing.T) {
	family := func() *cluster {
		return grown(build.Root("org", "team", "neco"), build.Child("team-a", "org"), build.Child("svc-1", "team-a"), build.Namespace("solo"))
	}
	orphaned := func() *cluster {
		return grown(build.Root("org"), noted(build.Child("x", "gone"), v1alpha1.AnnotationAncestry, "org/gone/x"))
	}
	mistyped := build.Namespace("solo", "team", "z")
	unrelated := build.Child("svc-1", "team-a", "team", "z")
	deaf := family()
	deaf.deaf = errors.New("out of order")
	const enforce = "pod-security.kubernetes.io/enforce"
	cases := map[string]struct {
		reason   string
		c        *cluster
		old, now client.Object
		want     answered
	}{
		"Empty": {"", family(), nil, build.Hierarchy("solo"), allowed()},
		"Joins": {"", family().allowing(admOrg, "* * solo"), nil, build.Hierarchy("solo", build.Below("org")), allowed()},
		"JoinsHalfOwned": {"its admin would become cluster-admin", family().allowing(admOrg), nil,
			build.Hierarchy("solo", build.Below("org")), refused(403,
				`needs every right in namespace "solo" (it joins another tree), or a cluster admin's mark`)},
		"JoinsUnasked": {"", family(), nil, build.Hierarchy("solo", build.Below("org")),
			refused(403, `user "alice" may not move namespace "solo": needs update on hierarchyconfigurations in namespace "org" (proposed `+
				`parent)`)},
		"JoinsByCreate": {"where there is no object yet, who may make it has the authority",
			family().allowing("create hierarchyconfigurations org", "* * solo"), nil, build.Hierarchy("solo", build.Below("org")), allowed()},
		"JoinsByCreateInVain": {"", family().with(build.Hierarchy("org")).allowing("create hierarchyconfigurations org"), nil,
			build.Hierarchy("solo", build.Below("org")), refused(403, `"org"`)},
		"JoinsByEdit": {"", family().allowing(admOrg, "* * solo"), build.Hierarchy("solo"), build.Hierarchy("solo", build.Below("org")),
			allowed()},
		"OtherField": {"nobody is asked", deaf, build.Hierarchy("solo", build.Below("org")),
			build.Hierarchy("solo", build.Below("org"), build.Cascades), allowed()},
		"AlreadyThere": {"", deaf, build.Hierarchy("team-a", build.Below("gone")), build.Hierarchy("team-a", build.Below("org")), allowed()},
		"JustMade": {"neither the namespace nor its parent has reached the forest",
			grown().later(build.Namespace("new"), build.Root("p")).allowing("update hierarchyconfigurations p/hierarchy", "* * new"), nil,
			build.Hierarchy("new", build.Below("p")), allowed()},
		"Missing": {"", family().allowing("create hierarchyconfigurations nosuch", "create namespaces", "* * solo"), nil,
			build.Hierarchy("solo", build.Below("nosuch")),
			allowed("parent namespace nosuch does not exist: a namespace below it is halted until the parent exists; " +
				"correct the name, or create the parent")},
		"MissingUnasked": {
			"it reads as for one that exists", family().allowing("create namespaces"), nil, build.Hierarchy("solo", build.Below("nosuch")),
			refused(403, `needs update on hierarchyconfigurations in namespace "nosuch" (proposed parent)`).warning("nosuch"),
		},
		"Orphan": {"", orphaned().allowing(admOrg), nil, build.Hierarchy("x", build.Below("")), allowed()},
		"HIER-M13 a move is refused with 503 while the webhook's cache lacks the old parent, which a live read finds": {
			"", orphaned().later(build.Namespace("gone")).allowing("*"), nil, build.Hierarchy("x", build.Below("")),
			refused(503, `the operator has not seen namespace "gone" yet`),
		},
		"Halted": {
			"", grown(build.Root("org"), build.Child("p", "q"), build.Child("q", "p"), build.Child("x", "p")).allowing(admOrg), nil,
			build.Hierarchy("x", build.Below("org")),
			refused(422, `ancestor "p" is halted (InCycle); resolve that first`),
		},
		"HaltedByAdmin": {"", grown(build.Root("org"), build.Child("p", "q"), build.Child("q", "p"), build.Child("x", "p")).allowing(clusterly),
			nil, build.Hierarchy("x", build.Below("org")), allowed()},
		"Cycle": {"cluster admins too", family().allowing("*"), nil, build.Hierarchy("team-a", build.Below("svc-1")),
			refused(422, "spec.parent", "would make a cycle: team-a -> svc-1 -> team-a")},
		"HIER-M23 a move is refused with 500 if the authorizer gives no answer": {
			"", deaf, nil, build.Hierarchy("solo", build.Below("org")), refused(500, "could not ask the authorizer"),
		},
		"Replaces": {"", grown(build.Root("org", "team", "neco"), mistyped).allowing(admOrg), nil,
			build.Hierarchy("solo", build.Below("org")), refused(422, "labels would be replaced: solo team (z); "+
				"first remove them, or keep them: list their keys in spec.overriddenLabels of their namespaces' HierarchyConfigurations")},
		"Overrides": {"", grown(build.Root("org", "team", "neco"), mistyped).allowing(admOrg, clusterly), nil,
			build.Hierarchy("solo", build.Below("org"), build.Overriding("team")), allowed()},
		"PropagatesOver": {"", grown(build.Root("org", "cost", "1"), build.Child("team-a", "org", "cost", "8")), nil,
			build.Hierarchy("org", build.Propagating("cost")),
			refused(422, "spec.propagatedLabels", "labels would be replaced: team-a cost (8); "+
				"first remove them, or keep them: list their keys in spec.overriddenLabels of their namespaces' HierarchyConfigurations")},
		"Requires": {"", family().allowing("create subnamespaces org"), nil, build.Hierarchy("org", build.Requiring("c1")), allowed()},
		"RequiresUnasked": {
			"", family(), nil, build.Hierarchy("org", build.Requiring("c1")),
			refused(403, `spec.requiredChildren`, `user "alice" may not require children of namespace "org": needs create on subnamespaces in `+
				`namespace "org"`),
		},
		"RequiresNoMore": {"", family(), build.Hierarchy("org", build.Requiring("c1")), build.Hierarchy("org"), allowed()},
		"Undelegated": {
			"", family(), nil, build.Hierarchy("team-a", build.Propagating(enforce), build.Overriding(enforce)),
			refused(403, "spec.propagatedLabels", "spec.overriddenLabels", "needs update on namespaces cluster-wide"),
		},
		"BILL-70 only cluster admins may propagate or override the two keys by a HierarchyConfiguration": {
			"", family().configured(payingLabels), nil, build.Hierarchy("team-a", build.Propagating("cost"), build.Overriding("app")),
			refused(403, "spec.propagatedLabels", "spec.overriddenLabels", "needs update on namespaces cluster-wide"),
		},
		"UndelegatedByAdmin": {"", family().allowing(clusterly), nil, build.Hierarchy("team-a", build.Propagating(enforce)), allowed()},
		"OverridesDeclared": {
			"", grown(build.Root("org"), build.Child("team-a", "org"), unrelated, build.Hierarchy("team-a", build.Propagating("cost"))), nil,
			build.Hierarchy("svc-1", build.Overriding("cost")),
			refused(403, `needs update on hierarchyconfigurations in namespace "team-a" (it propagates "cost")`),
		},
		"OverridesDeclaredAsked": {
			"", grown(build.Root("org"), build.Child("team-a", "org"), unrelated, build.Hierarchy("team-a", build.Propagating("cost"))).
				allowing(admTeamA), nil,
			build.Hierarchy("svc-1", build.Overriding("cost")), allowed(),
		},
		"HIER-M28 a move needs the consent of whoever propagates a key that a namespace below overrides": {
			"a move brings in no namespace that overrides what others propagate", grown(build.Root("org"), build.Child("team-a", "org"),
				build.Root("solo"), build.Child("mine", "solo"), build.Hierarchy("org", build.Propagating("cost")),
				build.Hierarchy("mine", build.Overriding("cost"))).allowing(admTeamA, "* * solo"), nil,
			build.Hierarchy("solo", build.Below("team-a")),
			refused(403, `needs update on hierarchyconfigurations in namespace "org" (it propagates "cost")`),
		},
		"Everything": {
			"of each field, the first no", family(), nil, build.Hierarchy("svc-1", build.Below(""), build.Requiring("c"),
				build.Propagating(enforce)),
			refused(403, "spec.parent", "spec.requiredChildren", "spec.propagatedLabels"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, tc.c.as(t, alice, webhooks.PathHierarchyConfiguration, tc.old, tc.now))
		})
	}
}
