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

func propagates(keys ...v1alpha1.MetadataKey) func(*v1alpha1.HierarchyConfigurationSpec) {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.PropagatedLabels = keys }
}

func overrides(keys ...v1alpha1.MetadataKey) func(*v1alpha1.HierarchyConfigurationSpec) {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.OverriddenLabels = keys }
}

func both(changes ...func(*v1alpha1.HierarchyConfigurationSpec)) func(*v1alpha1.HierarchyConfigurationSpec) {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) {
		for _, change := range changes {
			change(spec)
		}
	}
}

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
		"Empty":               {"", family(), nil, hierarchy("solo", nil), allowed()},
		"Joins":               {"", family().allowing(admOrg), nil, hierarchy("solo", parent("org")), allowed()},
		"JoinsUnasked":        {"", family(), nil, hierarchy("solo", parent("org")), refused(403, `user "alice" may not move namespace "solo": needs update on hierarchyconfigurations in namespace "org" (proposed parent)`)},
		"JoinsByCreate":       {"where there is no object yet, who may make it has the authority", family().allowing("create hierarchyconfigurations org"), nil, hierarchy("solo", parent("org")), allowed()},
		"JoinsByCreateInVain": {"", family().with(hierarchy("org", nil)).allowing("create hierarchyconfigurations org"), nil, hierarchy("solo", parent("org")), refused(403, `"org"`)},
		"JoinsByEdit":         {"", family().allowing(admOrg), hierarchy("solo", nil), hierarchy("solo", parent("org")), allowed()},
		"OtherField":          {"nobody is asked", deaf, hierarchy("solo", parent("org")), hierarchy("solo", both(parent("org"), allowing)), allowed()},
		"AlreadyThere":        {"", deaf, hierarchy("team-a", parent("gone")), hierarchy("team-a", parent("org")), allowed()},
		"JustMade":            {"neither the namespace nor its parent has reached the forest", grown().later(build.Namespace("new"), build.Root("p")).allowing("update hierarchyconfigurations p/hierarchy"), nil, hierarchy("new", parent("p")), allowed()},
		"Missing":             {"", family().allowing("create hierarchyconfigurations nosuch", "create namespaces"), nil, hierarchy("solo", parent("nosuch")), allowed("parent namespace nosuch does not exist")},
		"MissingUnasked": {
			"it reads as for one that exists", family().allowing("create namespaces"), nil, hierarchy("solo", parent("nosuch")),
			refused(403, `needs update on hierarchyconfigurations in namespace "nosuch" (proposed parent)`).warning("nosuch"),
		},
		"Orphan":        {"", orphaned().allowing(admOrg), nil, hierarchy("x", parent("")), allowed()},
		"OrphanUnknown": {"", orphaned().later(build.Namespace("gone")).allowing("*"), nil, hierarchy("x", parent("")), refused(503, `namespace "gone" is not known yet`)},
		"Halted": {
			"", grown(build.Root("org"), build.Child("p", "q"), build.Child("q", "p"), build.Child("x", "p")).allowing(admOrg), nil, hierarchy("x", parent("org")),
			refused(422, `ancestor "p" is halted (InCycle); resolve that first`),
		},
		"HaltedByAdmin":  {"", grown(build.Root("org"), build.Child("p", "q"), build.Child("q", "p"), build.Child("x", "p")).allowing(clusterly), nil, hierarchy("x", parent("org")), allowed()},
		"Cycle":          {"cluster admins too", family().allowing("*"), nil, hierarchy("team-a", parent("svc-1")), refused(422, "spec.parent", "would make a cycle: team-a -> svc-1 -> team-a")},
		"Deaf":           {"", deaf, nil, hierarchy("solo", parent("org")), refused(500, "could not ask the authorizer")},
		"Replaces":       {"", grown(build.Root("org", "team", "neco"), mistyped).allowing(admOrg), nil, hierarchy("solo", parent("org")), refused(422, "labels would be replaced: solo team (z); override or remove them first")},
		"Overrides":      {"", grown(build.Root("org", "team", "neco"), mistyped).allowing(admOrg, clusterly), nil, hierarchy("solo", both(parent("org"), overrides("team"))), allowed()},
		"PropagatesOver": {"", grown(build.Root("org", "cost", "1"), build.Child("team-a", "org", "cost", "8")), nil, hierarchy("org", propagates("cost")), refused(422, "spec.propagatedLabels", "labels would be replaced: team-a cost (8); override or remove them first")},
		"Requires":       {"", family().allowing("create subnamespaces org"), nil, hierarchy("org", requires("c1")), allowed()},
		"RequiresUnasked": {
			"", family(), nil, hierarchy("org", requires("c1")),
			refused(403, `spec.requiredChildren`, `user "alice" may not require children of namespace "org": needs create on subnamespaces in namespace "org"`),
		},
		"RequiresNoMore": {"", family(), hierarchy("org", requires("c1")), hierarchy("org", nil), allowed()},
		"Undelegated": {
			"", family(), nil, hierarchy("team-a", both(propagates(enforce), overrides(enforce))),
			refused(403, "spec.propagatedLabels", "spec.overriddenLabels", "needs update on namespaces cluster-wide"),
		},
		"UndelegatedByAdmin": {"", family().allowing(clusterly), nil, hierarchy("team-a", propagates(enforce)), allowed()},
		"OverridesDeclared": {
			"", grown(build.Root("org"), build.Child("team-a", "org"), unrelated, hierarchy("team-a", propagates("cost"))), nil,
			hierarchy("svc-1", overrides("cost")), refused(403, `needs update on hierarchyconfigurations in namespace "team-a" (it propagates "cost")`),
		},
		"OverridesDeclaredAsked": {
			"", grown(build.Root("org"), build.Child("team-a", "org"), unrelated, hierarchy("team-a", propagates("cost"))).allowing(admTeamA), nil,
			hierarchy("svc-1", overrides("cost")), allowed(),
		},
		"Everything": {
			"of each field, the first no", family(), nil, hierarchy("svc-1", both(parent(""), requires("c"), propagates(enforce))),
			refused(403, "spec.parent", "spec.requiredChildren", "spec.propagatedLabels"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, tc.c.as(t, alice, webhooks.PathHierarchyConfiguration, tc.old, tc.now))
		})
	}
}
