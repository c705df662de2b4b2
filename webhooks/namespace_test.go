package webhooks_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

func template(name, of string) *corev1.Namespace {
	return build.Template(name, v1alpha1.LabelTemplate, of)
}

func placed(n *corev1.Namespace, ancestry string) *corev1.Namespace {
	return noted(n, v1alpha1.AnnotationAncestry, ancestry)
}

// ofTenant marks the root of the LNamespace that the function tenant makes.
func ofTenant(n *corev1.Namespace) *corev1.Namespace {
	return noted(n, v1alpha1.AnnotationLNamespaceUID, "uid-1")
}

func instance(name, of string) *corev1.Namespace {
	return build.Namespace(name, v1alpha1.LabelTemplate, of)
}

func TestNamespaces(t *testing.T) {
	family := func() *cluster { return grown(build.Root("a"), build.Child("b", "a"), build.Child("c", "b")) }
	chain := grown(build.Template("t1"), template("t2", "t1"), template("t3", "t2"))
	limited := func(size, depth int32) *cluster {
		return grown(tenant(build.Tenant("t").Limits(size, depth))...).
			with(bound("t-1", "t"), ending(bound("t-2", "t")), build.Root("a"), build.Child("b", "a"), build.Child("c", "b"))
	}
	crowd := grown(build.Root("r"))
	for i := range 12 {
		crowd.with(build.Child(fmt.Sprintf("c%02d", i), "r"))
	}
	cases := map[string]struct {
		reason   string
		c        *cluster
		old, now client.Object
		want     answered
	}{
		"Cycle":         {"", family(), build.Child("b", "a"), build.Child("b", "c"), refused(422, "would make a cycle: b -> c -> b")},
		"OwnParent":     {"", family(), build.Child("b", "a"), build.Child("b", "b"), refused(422, "would make a cycle: b -> b")},
		"TemplateCycle": {"", chain, build.Template("t1"), template("t1", "t3"), refused(422, "would make a cycle: t1 -> t3 -> t2 -> t1")},
		"BelowOthersCycle": {
			"it is halted, and no part of the cycle", grown(build.Child("x", "y"), build.Child("y", "x")), nil, build.Child("n", "x"),
			allowed("parent namespace x is halted (InCycle)"),
		},
		"ParentTemplate": {"", chain, nil, build.Child("n", "t1"), refused(422, "parent namespace t1 is a template")},
		"ParentGoing": {"", grown(ending(build.Root("g"))), nil, build.Child("n", "g"),
			refused(422, "parent namespace g is being terminated")},
		"ParentPlain": {"", grown(build.Namespace("p")), nil, build.Child("n", "p"),
			allowed("parent namespace p is not a root or a sub-namespace yet")},
		"ParentMissing": {"", grown(), nil, build.Child("n", "r"),
			allowed("parent namespace r does not exist: a namespace below it is halted until the parent exists; " +
				"correct the name, or create the parent")},
		"ParentJustMade": {"what exists is not called missing", grown().later(build.Root("r")), nil, build.Child("n", "r"), allowed()},
		"ParentProtected": {
			"by the configuration, which no policy knows", grown(build.Namespace("locked-1")), nil, build.Child("n", "locked-1"),
			refused(403, "locked-1 is a protected namespace"),
		},
		"TemplatePlain": {"", grown(build.Namespace("default")), build.Root("r"), build.Root("r", v1alpha1.LabelTemplate, "default"),
			refused(422, "default is not a template namespace")},
		"TemplateMissing": {"", grown(), build.Root("r"), build.Root("r", v1alpha1.LabelTemplate, "missing"),
			allowed("template namespace missing does not exist")},
		"Unrooted": {"", grown(build.Root("r"), build.Child("c", "r")), build.Root("r"), build.Namespace("r"),
			refused(403, "r has 1 child (c)")},
		"RootToTemplate": {"", grown(build.Root("r"), build.Child("c", "r"), build.Child("d", "r")), build.Root("r"), build.Template("r"),
			refused(403, "r has 2 children (c, d)")},
		"UnrootedCrowd": {"long lists are cut", crowd, build.Root("r"), build.Namespace("r"),
			refused(403, "r has 12 children (c00, c01, c02, c03, c04, and 7 more)")},
		"UnrootedAlone": {"", grown(build.Root("r")), build.Root("r"), build.Namespace("r"), allowed()},
		"Grafted": {"children come along", grown(build.Root("r"), build.Child("c", "r"), build.Root("s")), build.Root("r"),
			bound("r", "s"), allowed()},
		"GraftedToEndingSub": {
			"the operator would delete the namespace", grown(build.Root("r"), build.Root("s"), ending(build.SubNamespace("s", "r"))),
			build.Root("r"), bound("r", "s"),
			refused(403, "SubNamespace s/r is being deleted, and would take this namespace with it: try again when it is gone"),
		},
		"BoundToEndingSub": {
			"by the label bound alone", grown(build.Root("s"), ending(build.SubNamespace("s", "r"))), build.Child("r", "s"), bound("r", "s"),
			refused(403, "SubNamespace s/r is being deleted, and would take this namespace with it"),
		},
		"GraftedToSubThatEndsJustNow": {
			"the forest has not seen it yet", grown(build.Root("r"), build.Root("s")).later(ending(build.SubNamespace("s", "r"))),
			build.Root("r"), bound("r", "s"), refused(403, "SubNamespace s/r is being deleted"),
		},
		"GraftedWhereTheSubIsJustGone": {
			"the forest has not seen it yet", grown(build.Root("r"), build.Root("s")).unaware(ending(build.SubNamespace("s", "r"))),
			build.Root("r"), bound("r", "s"), allowed(),
		},
		"PlacedBesideEndingSub": {
			"only a bound namespace goes", grown(build.Root("r"), build.Root("s"), ending(build.SubNamespace("s", "r"))),
			build.Root("r"), build.Child("r", "s"), allowed(),
		},
		"Untemplated": {"", grown(build.Template("base"), instance("r1", "base")), build.Template("base"), build.Namespace("base"),
			refused(403, "base is referenced by: r1")},
		"UntemplatedAlone": {"", grown(build.Template("base")), build.Template("base"), build.Namespace("base"), allowed()},
		"Orphaning":        {"", family(), build.Child("b", "a"), build.Namespace("b"), refused(403, "b has 1 child (c)")},
		"CutOff":           {"a root may have children", family(), build.Child("b", "a"), build.Root("b"), allowed()},
		"ProtectedRoot":    {"", grown(), nil, build.Root("locked-1"), refused(403, "locked-1 is a protected namespace")},
		"ProtectedLeaves": {"nothing of ours holds it", grown(build.Root("locked-1")), build.Root("locked-1"), build.Namespace("locked-1"),
			allowed()},
		"NoRoom": {"the subtree counts as a whole", limited(3, -1), build.Child("b", "a"), build.Child("b", "t"),
			refused(403, "tenant t allows 3 sub-namespaces (2 in use, 1 terminating)")},
		"Room": {"", limited(4, -1), build.Child("b", "a"), build.Child("b", "t"), allowed()},
		"TooDeep": {"the deepest counts", limited(-1, 1), build.Child("b", "a"), build.Child("b", "t"),
			refused(403, "tenant t: depth 2 exceeds the limit of 1")},
		"NoRoomAndTooDeep": {"all in one answer", limited(2, 1), build.Child("b", "a"), build.Child("b", "t"),
			refused(403, "allows 2 sub-namespaces", "depth 2 exceeds the limit of 1")},
		"WithinAFullTree": {"", limited(2, -1), bound("t-1", "t"), bound("t-1", "t-2"), refused(422, "t-2 is being terminated")},
		"LimitOfTheDefault": {"", grown(build.Root("a")).configured(defaultLimit(0)), nil, build.Child("n", "a"),
			refused(403, "tree a allows 0 sub-namespaces (0 in use)")},
		"ReplacesALabel": {
			"whoever moves by label is told", grown(build.Root("a", "team", "neco"), build.Namespace("n", "team", "own")),
			build.Namespace("n", "team", "own"), build.Child("n", "a", "team", "own"), allowed("labels will be replaced: n team (own)"),
		},
		"SUB-T16 a tenant's root that loses all of Warren's keys is refused: LNamespace t would lose this namespace": {
			"", grown(tenant(build.Tenant("t"))...), ofTenant(placed(build.Root("t"), "t")), build.Namespace("t"),
			refused(403, "metadata.labels[tenancy.warren.dev/type]", "LNamespace t would lose this namespace, with the rights and copies in it: "+
				"keep the labels and annotations of tenancy.warren.dev")},
		"SUB-T16 a tenant's root that loses its type and the LNamespace's uid has a Warning with the mark that undoes it": {
			"on purpose", grown(tenant(build.Tenant("t"))...), ofTenant(placed(build.Root("t"), "t")),
			placed(build.Namespace("t"), "t"), allowed("to undo this: kubectl annotate namespace t tenancy.warren.dev/adopt=uid-1")},
		"SUB-T16 a tenant's root that loses its type alone has no Warning": {
			"the operator restores the label (ACC-N10)", grown(tenant(build.Tenant("t"))...),
			ofTenant(placed(build.Root("t"), "t")), ofTenant(placed(build.Namespace("t"), "t")), allowed()},
		"SUB-T16 a bound namespace that loses all of Warren's keys is refused, with kubectl warren cut": {
			"", grown(build.Root("p"), build.SubNamespace("p", "w")), placed(bound("w", "p"), "p/w"), build.Namespace("w"),
			refused(403, "metadata.labels[tenancy.warren.dev/parent]", "SubNamespace p/w would lose this namespace",
				"as kubectl apply does; to take the namespace out of its tree: kubectl warren cut w"),
		},
		"SUB-T16 a bound namespace that loses parent and bound alone has a Warning with kubectl warren graft": {
			"on purpose", grown(build.Root("p"), build.SubNamespace("p", "w")), placed(bound("w", "p"), "p/w"), placed(build.Namespace("w"), "p/w"),
			allowed("namespace w leaves its tree: the operator deletes the rights and copies that it has from there; " +
				"to undo this: kubectl warren graft w p"),
		},
		"SUB-T16 a bound namespace whose SubNamespace is missing may lose all keys, with a Warning": {
			"nothing claims it", grown(build.Root("p")), placed(bound("w", "p"), "p/w"), build.Namespace("w"),
			allowed("to undo this: kubectl warren set w --parent p")},
		"SUB-T16 a placed leaf that loses all of Warren's keys has a Warning with kubectl warren set": {
			"", grown(build.Root("p")), placed(build.Child("w", "p"), "p/w"), build.Namespace("w"),
			allowed("namespace w leaves its tree: the operator deletes the rights and copies that it has from there; " +
				"to undo this: kubectl warren set w --parent p")},
		"SUB-T16 a bound namespace that becomes a root has no Warning": {
			"it is a root then", grown(build.Root("p"), build.SubNamespace("p", "w")), placed(bound("w", "p"), "p/w"),
			placed(build.Root("w"), "p/w"), allowed()},

		"DeleteBound": {
			"", grown(build.Root("p"), bound("w", "p"), build.SubNamespace("p", "w")), bound("w", "p"), nil,
			refused(403, "delete the SubNamespace w in namespace p instead"),
		},
		"DeleteBoundGoing": {"", grown(build.Root("p"), bound("w", "p"), ending(build.SubNamespace("p", "w"))), bound("w", "p"), nil,
			allowed()},
		"DeleteBoundLost": {"", grown(build.Root("p"), bound("w", "p")), bound("w", "p"), nil, allowed()},
		"DeleteWithBound": {"", grown(build.Root("p"), bound("w", "p"), bound("v", "p")), build.Root("p"), nil,
			refused(403, "p has sub-namespaces (v, w): delete them first or set allowCascadingDeletion")},
		"DeleteWithGoing": {"", grown(build.Root("p"), ending(bound("w", "p"))), build.Root("p"), nil, allowed()},
		"DeleteWithUnbound": {"", grown(build.Root("p"), build.Child("f", "p")), build.Root("p"), nil,
			allowed("p has children that are not bound; they stay, and are halted until they have a parent again: f")},
		"DeleteCascading": {"", grown(build.Root("p"), bound("w", "p")), noted(build.Root("p"), v1alpha1.AnnotationCascading, "true"), nil,
			allowed()},
		"DeleteConfigured": {"", grown(build.Root("p"), bound("w", "p")).configured(cascading), build.Root("p"), nil, allowed()},
		"DeleteAllowedSoon": {"the annotation follows", grown(append(tenant(build.Tenant("p").Cascading()), bound("w", "p"))...),
			noted(build.Root("p"), v1alpha1.AnnotationLNamespaceUID, "uid-1"), nil, refused(503, "not in force yet")},
		"DeleteAllowedByHC": {"", grown(build.Root("p"), bound("w", "p"), build.Hierarchy("p", build.Cascades)), build.Root("p"), nil,
			refused(503, "not in force yet")},
		"DeleteAllowedAbove": {"", grown(build.Root("o"), build.Child("p", "o"), bound("w", "p"), build.Hierarchy("o", build.Cascades)),
			build.Child("p", "o"), nil, refused(503, "not in force yet")},
		"DeleteNotItsOwn": {"an LNamespace says nothing about a namespace that is not its own",
			grown(build.Root("p"), bound("w", "p"), build.Tenant("p").Cascading().Object()), build.Root("p"), nil,
			refused(403, "has sub-namespaces (w)")},
		"DeleteTemplate": {"cascading is for children", grown(build.Template("base"), instance("r1", "base")).configured(cascading),
			build.Template("base"), nil, refused(403, "base is referenced by: r1")},
		"DeleteGoing": {"", grown(build.Root("p"), bound("w", "p")), ending(build.Root("p")), nil, allowed()},
		"DeleteProtected": {"we say nothing about it", grown(build.Root("locked-1"), bound("w", "locked-1")), build.Root("locked-1"), nil,
			allowed()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, tc.c.as(t, alice, webhooks.PathNamespaces, tc.old, tc.now))
		})
	}
}

func defaultLimit(n int32) func(*config.OperatorConfiguration) {
	return func(c *config.OperatorConfiguration) { c.SubNamespaces.Limits.SubNamespaces = &n }
}

func cascading(c *config.OperatorConfiguration) { c.SubNamespaces.AllowCascadingDeletion = true }
