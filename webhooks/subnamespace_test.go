package webhooks_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// carrying gives the SubNamespace itself a label and an annotation; "" for none.
func carrying(sub *v1alpha1.SubNamespace, label, annotation string) *v1alpha1.SubNamespace {
	if label != "" {
		metav1.SetMetaDataLabel(&sub.ObjectMeta, label, "x")
	}
	if annotation != "" {
		metav1.SetMetaDataAnnotation(&sub.ObjectMeta, annotation, "x")
	}
	return sub
}

func annotated(sub *v1alpha1.SubNamespace, key string) *v1alpha1.SubNamespace {
	sub.Spec.Annotations = map[string]v1alpha1.AnnotationValue{key: "x"}
	return sub
}

// payingLabels configures the labels app and cost as the billing labels: app for the cost center, cost for the owner.
func payingLabels(c *config.OperatorConfiguration) {
	c.Billing.NamespaceLabels = config.BillingNamespaceLabels{CostCenter: "app", Owner: "cost"}
}

func TestSubNamespaces(t *testing.T) {
	payments := func() *cluster { return grown(build.Root("payments"), build.Root("app-team1")) }
	waiting := func() *cluster { return payments().with(build.Child("x", "p"), build.Child("w", "p")) }
	cases := map[string]struct {
		reason   string
		c        *cluster
		old, now client.Object
		want     answered
	}{
		"New": {"", payments(), nil, build.SubNamespace("payments", "pay-web", "app", "web"), allowed()},
		"Keys": {
			"all in one answer", payments(), nil, annotated(build.SubNamespace("payments", "w", "foo", "a", "app", "b"), "bar"),
			refused(403, "spec.labels[foo]: Forbidden: not allowed by subNamespaces.labels",
				"spec.annotations[bar]: Forbidden: not allowed by subNamespaces.annotations"),
		},
		"BILL-70 a SubNamespace with one of the two keys is refused, also if subNamespaces.labels allows the key": {
			"whatever the configuration allows besides", payments().configured(payingLabels), nil,
			build.SubNamespace("payments", "w", "app", "0", "cost", "1"),
			refused(403, "spec.labels[app]: Forbidden: follows spec.billing of the LNamespace, by billing.namespaceLabels of the "+
				"configuration: leave the key out", "spec.labels[cost]: Forbidden: follows"),
		},
		"SaidWhoPays": {"what an earlier configuration allowed may stay", payments().configured(payingLabels),
			build.SubNamespace("payments", "w", "app", "0"), annotated(build.SubNamespace("payments", "w", "app", "0"), "memo"), allowed()},

		"InPlain": {"", grown(build.Namespace("p")), nil, build.SubNamespace("p", "w"),
			refused(403, "p is neither a root nor a sub-namespace")},
		"InATemplate": {"", grown(build.Template("p")), nil, build.SubNamespace("p", "w"),
			refused(403, "p is neither a root nor a sub-namespace")},
		"InPlainToBePlaced": {"", grown(build.Namespace("p"), build.Hierarchy("p", build.Below("r"))), nil, build.SubNamespace("p", "w"),
			allowed("p is neither a root nor a sub-namespace")},
		"InPlainToBeARoot": {"a request to be a root names no parent", grown(build.Namespace("p"), build.Hierarchy("p", build.Below(""))), nil,
			build.SubNamespace("p", "w"), refused(403, "neither")},
		"InHalted": {"it heals by itself", grown(build.Child("p", "gone")), nil, build.SubNamespace("p", "w"),
			allowed("p is halted (ParentMissing)")},
		"InJustMade":       {"", grown().later(build.Root("p")), nil, build.SubNamespace("p", "w"), allowed()},
		"OwnName":          {"", payments(), nil, build.SubNamespace("payments", "payments"), refused(403, "own name")},
		"Protected":        {"", payments(), nil, build.SubNamespace("payments", "kube-x"), refused(403, "kube-x is a protected namespace")},
		"ProtectedDefault": {"", payments(), nil, build.SubNamespace("payments", "default"), refused(403, "default is a protected namespace")},
		"REQ-X6 nobody makes a SubNamespace warren-sudo before component requests is installed": {"", payments(), nil,
			build.SubNamespace("payments", "warren-sudo"), refused(403, "warren-sudo is a protected namespace")},
		"ProtectedByFile": {"", payments(), nil, build.SubNamespace("payments", "locked-x"), refused(403, "locked-x is a protected namespace")},
		"ProtectedByLabel": {"", payments().with(build.Namespace("a", v1alpha1.LabelProtected, "true")), nil,
			build.SubNamespace("payments", "a"), refused(403, "a is a protected namespace")},
		"TakenPlain": {"GitOps heals it", payments().with(build.Namespace("web")), nil, build.SubNamespace("payments", "web"),
			allowed("namespace web exists outside of this tree")},
		"SEC-W35 the Warning about a name that another tenant has says the same, and not which tenant": {
			"and nobody learns by whom", payments().with(bound("web", "shop")), nil, build.SubNamespace("payments", "web"),
			allowed("namespace web exists outside of this tree")},
		"SUB-K8 a SubNamespace with the name of its tree's root is accepted with a Warning: choose another name": {
			"", payments().with(bound("web", "payments")), nil, build.SubNamespace("web", "payments"),
			allowed("namespace payments is the root of this tree: choose another name")},
		"TakenJustNow": {"", payments().later(build.Namespace("web")), nil, build.SubNamespace("payments", "web"),
			allowed("namespace web exists")},
		"TakenUp": {"its own, whose SubNamespace was lost", payments().with(bound("web", "payments")), nil,
			build.SubNamespace("payments", "web"), allowed()},
		"Named": {"", payments(), nil, build.SubNamespace("app-team1", "app-team1-a"), allowed()},
		"Misnamed": {"", payments(), nil, build.SubNamespace("app-team1", "app-team2-a"),
			refused(403, `name "app-team2-a" breaks the naming policy of root app-team1: must match ^app-team1-.*`)},
		"MisnamedButThere": {"only what would be made is judged", payments().with(build.Child("legacy", "app-team1")), nil,
			build.SubNamespace("app-team1", "legacy"), allowed("is not bound")},
		"TooDeep": {"", grown(tenant(build.Tenant("t").Limits(-1, 1))...).with(bound("u", "t")), nil, build.SubNamespace("u", "v"),
			refused(403, "tenant t: depth 2 exceeds the limit of 1")},
		"NoRoom": {"", grown(tenant(build.Tenant("t").Limits(1, -1))...).with(ending(bound("u", "t"))), nil, build.SubNamespace("t", "v"),
			refused(403, "tenant t allows 1 sub-namespaces (1 in use, 1 terminating)")},
		"SEC-X32 a SubNamespace that waits because its name is taken counts: a further one above the limit is refused": {
			"who waits counts", grown(tenant(build.Tenant("t").Limits(2, -1))...).
				with(bound("u", "t"), build.Root("taken"), build.SubNamespace("t", "u"), build.SubNamespace("t", "taken")), nil,
			build.SubNamespace("t", "v"), refused(403, "tenant t allows 2 sub-namespaces (2 in use)"),
		},
		"RoomAwaitedItself": {"", grown(tenant(build.Tenant("t").Limits(1, -1))...).with(build.SubNamespace("t", "v")), nil,
			build.SubNamespace("t", "v"), allowed()},
		"RoomAwaitedGoes": {"", grown(tenant(build.Tenant("t").Limits(1, -1))...).with(ending(build.SubNamespace("t", "x"))), nil,
			build.SubNamespace("t", "v"), allowed()},
		"NoneAllowed": {"", grown(tenant(build.Tenant("t").Limits(0, -1))...), nil, build.SubNamespace("t", "v"),
			refused(403, "tenant t allows 0 sub-namespaces (0 in use)")},
		"Everything": {"", grown(build.Root("app-team1")).configured(defaultLimit(0)), nil,
			build.SubNamespace("app-team1", "x", "foo", "a"), refused(403, "spec.labels[foo]", "must match", "allows 0")},
		"Awaited": {"", waiting(), nil, build.SubNamespace("payments", "p"),
			refused(403, `namespaces w, x wait for a parent named "p"`)},
		"AwaitedByTheirs": {"", waiting().allowing("update hierarchyconfigurations w/hierarchy", "create hierarchyconfigurations x"), nil,
			build.SubNamespace("payments", "p"), allowed()},
		"AwaitedByHisHalf": {"", waiting().allowing("update hierarchyconfigurations w/hierarchy"), nil, build.SubNamespace("payments", "p"),
			refused(403, "wait for")},
		"AwaitedByHC": {"who may only create is out where there is one",
			waiting().with(build.Hierarchy("x")).allowing("update hierarchyconfigurations w/hierarchy", "create hierarchyconfigurations x"), nil,
			build.SubNamespace("payments", "p"), refused(403, "wait for")},
		"AwaitedByAdmin": {"", waiting().allowing("update namespaces"), nil, build.SubNamespace("payments", "p"), allowed()},

		"SUB-T18 each new key in the metadata that the spec may have has a Warning: metadata.labels[team] doesn't reach the namespace: put it " +
			"into spec.labels": {
			"HNC's users write them there; what tools write is no mistake", payments(), nil, carrying(build.SubNamespace("payments", "w"), "team",
				"memo"),
			allowed("metadata.labels[team] doesn't reach the namespace: put it into spec.labels",
				"metadata.annotations[memo] doesn't reach the namespace: put it into spec.annotations"),
		},
		"SUB-T18 a key in the metadata that the spec has too has no Warning": {
			"", payments(), nil, carrying(build.SubNamespace("payments", "w", "team", "x"), "team", ""), allowed()},
		"SUB-T18 a key in the metadata that the spec may not have has no Warning": {"the spec can't have them", payments(), nil,
			carrying(build.SubNamespace("payments", "w"), "memo", "team"), allowed()},
		"SUB-T18 a key of tools, such as app.kubernetes.io/instance, has no Warning": {
			"", payments().configured(func(c *config.OperatorConfiguration) { c.SubNamespaces.Labels = config.Globs{"*/*"} }), nil,
			carrying(build.SubNamespace("payments", "w"), "app.kubernetes.io/instance", ""), allowed()},
		"SUB-T18 a key that was in the metadata before has no Warning": {
			"once is enough", payments(), carrying(build.SubNamespace("payments", "w"), "team", ""),
			carrying(build.SubNamespace("payments", "w", "app", "x"), "team", ""), allowed()},

		"OldKey": {"a configuration that changed holds up no edit", payments(), build.SubNamespace("payments", "w", "old", "a"),
			annotated(build.SubNamespace("payments", "w", "old", "a"), "memo"), allowed()},
		"OldKeyNew": {"", payments(), build.SubNamespace("payments", "w", "old", "a"), build.SubNamespace("payments", "w", "old", "b"),
			refused(403, "spec.labels[old]")},
		"OldKeyGone": {"", payments(), build.SubNamespace("payments", "w", "old", "a"), build.SubNamespace("payments", "w"), allowed()},

		"Delete": {"", payments().with(bound("w", "payments")), build.SubNamespace("payments", "w"), nil, allowed()},
		"DeleteWithChildren": {
			"", payments().with(bound("w", "payments"), bound("d2", "w"), bound("d1", "w")), build.SubNamespace("payments", "w"), nil,
			refused(403, "w has sub-namespaces (d1, d2): delete them first or set allowCascadingDeletion"),
		},
		"DeleteWithUnbound": {"", payments().with(bound("w", "payments"), build.Child("f", "w")), build.SubNamespace("payments", "w"), nil,
			allowed("w has children that are not bound")},
		"DeleteAllowedSoon": {"", payments().with(bound("w", "payments"), bound("d", "w"), build.Hierarchy("payments", build.Cascades)),
			build.SubNamespace("payments", "w"), nil, refused(503, "not in force yet")},
		"DeleteCascading": {"", payments().with(noted(bound("w", "payments"), v1alpha1.AnnotationCascading, "true"), bound("d", "w")),
			build.SubNamespace("payments", "w"), nil, allowed()},
		"DeleteInConflict": {"what is not its own is not touched", payments().with(build.Root("w"), bound("d", "w")),
			build.SubNamespace("payments", "w"), nil, allowed()},
		"DeleteRequired": {"", payments().with(build.Hierarchy("payments", build.Requiring("w"))), build.SubNamespace("payments", "w"), nil,
			refused(403, "is required by HierarchyConfiguration payments/hierarchy")},
		"DeleteRequiredElse": {"", payments().with(build.Hierarchy("payments", build.Requiring("v"))), build.SubNamespace("payments", "w"), nil,
			allowed()},
		"DeleteRequiredEnds": {"", grown(ending(build.Root("p")), build.Hierarchy("p", build.Requiring("w"))), build.SubNamespace("p", "w"), nil,
			allowed()},
		"DeleteBoth": {
			"all in one answer", payments().with(bound("w", "payments"), bound("d", "w"), build.Hierarchy("payments", build.Requiring("w"))),
			build.SubNamespace("payments", "w"), nil,
			refused(403, "has sub-namespaces (d)", "is required by"),
		},
		"DeleteAgain": {"", payments().with(bound("w", "payments"), bound("d", "w")), ending(build.SubNamespace("payments", "w")), nil,
			allowed()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, tc.c.as(t, alice, webhooks.PathSubNamespaces, tc.old, tc.now))
		})
	}
}
