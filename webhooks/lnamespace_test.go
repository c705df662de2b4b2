package webhooks_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// sudoed returns an LNamespace that alice makes, as the mutating webhook leaves it.
func sudoed(name string, sudoers ...v1alpha1.Subject) *v1alpha1.LNamespace {
	lns := build.Tenant(name).Managers("mia").Object()
	lns.Annotations = map[string]string{v1alpha1.AnnotationCreator: "alice"}
	lns.Spec.Sudoers = sudoers
	return lns
}

func billed(name, costCenter, owner string) *v1alpha1.LNamespace {
	lns := build.Tenant(name).Managers("mia").Object()
	lns.Spec.Billing = &v1alpha1.Billing{CostCenter: costCenter, Owner: owner}
	return lns
}

// budgeted returns LNamespace t with a budget of 1 of each key.
func budgeted(keys ...corev1.ResourceName) *v1alpha1.LNamespace {
	lns := build.Tenant("t").Managers("mia", "bob").Object()
	lns.Spec.Limits = &v1alpha1.Limits{Hard: v1alpha1.Budget{}}
	for _, key := range keys {
		lns.Spec.Limits.Hard[key] = resource.MustParse("1")
	}
	return lns
}

func madeBy(user string, names ...string) []client.Object {
	var made []client.Object
	for _, name := range names {
		lns := build.Tenant(name).Object()
		lns.Annotations = map[string]string{v1alpha1.AnnotationCreator: user}
		made = append(made, lns)
	}
	return made
}

// holding returns a cluster with tenant t and its root.
func holding() *cluster { return grown(tenant(build.Tenant("t").Managers("mia", "bob"))...) }

// held returns a child of tenant t's root, with the record that these users had rights in it when it was placed.
func held(name string, users ...string) *corev1.Namespace {
	var holders []string
	for _, user := range users {
		holders = append(holders, "User "+user)
	}
	return noted(build.Child(name, "t"), v1alpha1.AnnotationHeldBy, *forest.RecordOfHolders(holders))
}

func TestLNamespaces(t *testing.T) {
	owner := func(b *build.LNamespace) *v1alpha1.LNamespace { return tenant(b)[0].(*v1alpha1.LNamespace) }
	three := func(c *config.OperatorConfiguration) {
		c.Billing.Defaults = []config.BillingDefault{
			{Group: "g1", Billing: v1alpha1.Billing{CostCenter: "1", Owner: "one"}},
			{Group: "g2", Billing: v1alpha1.Billing{CostCenter: "2", Owner: "two"}}, {Group: "g3", Billing: v1alpha1.Billing{CostCenter: "3"}},
			{Billing: v1alpha1.Billing{CostCenter: "9"}},
		}
	}
	asked := func(c *config.OperatorConfiguration) {
		c.Billing.Required = []config.BillingField{config.RequireCostCenter, config.RequireOwner}
		c.Billing.CostCenterPattern = "^[0-9]{4}$"
	}
	most := func(c *config.OperatorConfiguration) { c.Tenants.MaxPerCreator = 2 }
	robot := build.ServiceAccount("payments", "robot")
	cases := map[string]struct {
		reason   string
		c        *cluster
		old, now client.Object
		want     answered
	}{
		"New":         {"", grown(), nil, sudoed("payments"), allowed()},
		"Reserved":    {"", grown(), nil, sudoed("istio-system"), refused(403, "istio-system is a reserved name")},
		"ReservedOwn": {"", grown(build.Namespace("warren-system")), nil, sudoed("warren-system"), refused(403, "reserved")},
		"ReservedNoLonger": {"", grown().configured(func(c *config.OperatorConfiguration) { c.Tenants.ReservedNames = nil }), nil,
			sudoed("istio-system"), allowed()},
		"Taken": {"", grown(build.Namespace("legacy")), nil, sudoed("legacy"),
			refused(403, "namespace legacy exists; a cluster admin can name who may adopt it: kubectl annotate namespace legacy "+
				"tenancy.warren.dev/adopt=alice --overwrite")},
		"ACC-N18 a user who creates an LNamespace that exists gets AlreadyExists, also if the user has as many as " +
			"allowed": {"",
			grown(tenant(build.Tenant("payments"))...).with(madeBy("alice", "a", "b")...).configured(most), nil, sudoed("payments"),
			refused(409, `lnamespaces.tenancy.warren.dev "payments" already exists`)},
		"TakenRoot": {"a label adopts nothing", grown(build.Root("legacy")), nil, sudoed("legacy"),
			refused(403, "a cluster admin can name who may adopt it")},
		"TakenJustNow": {"", grown().later(build.Namespace("legacy")), nil, sudoed("legacy"), refused(403, "namespace legacy exists")},
		"TakenMarked":  {"", grown(noted(build.Namespace("legacy"), v1alpha1.AnnotationAdopt, "alice")), nil, sudoed("legacy"), allowed()},
		"TakenForNobody": {"", grown(noted(build.Namespace("legacy"), v1alpha1.AnnotationAdopt, "true")), nil, sudoed("legacy"),
			refused(403, "adopt=true names no user")},
		"TakenForEve": {"", grown(noted(build.Namespace("legacy"), v1alpha1.AnnotationAdopt, "eve")), nil, sudoed("legacy"),
			refused(403, "a cluster admin can name who may adopt it")},
		"ACC-N16 a cluster admin is refused with " +
			"adopt=system:masters": {"", grown(build.Namespace("legacy")), nil, build.Tenant("legacy").Managers("mia").Object(),
			refused(403, "tenancy.warren.dev/adopt=system:masters --overwrite")},
		"ACC-N16 a cluster admin adopts a Namespace with mark " +
			"system:masters": {"", grown(noted(build.Namespace("legacy"), v1alpha1.AnnotationAdopt, "system:masters")),
			nil, build.Tenant("legacy").Managers("mia").Object(), allowed()},
		"ACC-N16 other users are refused with their own name if the mark is " +
			"system:masters": {"", grown(noted(build.Namespace("legacy"), v1alpha1.AnnotationAdopt, "system:masters")), nil,
			sudoed("legacy"), refused(403, "tenancy.warren.dev/adopt=alice --overwrite")},
		"TakenGoing": {"", grown(ending(build.Root("payments"))), nil, sudoed("payments"),
			refused(403, "namespace payments is being terminated")},
		"TakenSub": {"", grown(build.Root("r"), noted(build.Child("c", "r"), v1alpha1.AnnotationAdopt, "alice")), nil, sudoed("c"),
			refused(403, "is a sub-namespace or a template")},
		"Awaited":        {"", grown(build.Child("x", "p")), nil, sudoed("p"), refused(403, `namespace x waits for a parent named "p"`)},
		"AwaitedByAdmin": {"", grown(build.Child("x", "p")).allowing("update namespaces"), nil, sudoed("p"), allowed()},
		"QUOTA-97 a new budget of CPU or memory brings a Warning that pods must state it": {"", grown(), nil,
			budgeted("pods", "requests.cpu"), allowed("spec.limits.hard: with requests.cpu, Kubernetes refuses pods")},
		"QUOTA-97 a change of its amount brings none": {"", holding(), budgeted("limits.memory"), budgeted("limits.memory"), allowed()},
		"Template":        {"", grown(build.Template("base")), nil, build.Tenant("t").Template("base").Object(), allowed()},
		"TemplateMissing": {"", grown(), nil, build.Tenant("t").Template("base").Object(), allowed("template namespace base does not exist")},
		"TemplatePlain": {"", grown(build.Namespace("base")), nil, build.Tenant("t").Template("base").Object(),
			refused(422, "spec.template", "base is not a template namespace")},
		"OwnRobot": {
			"before there is a tree", grown(), nil, sudoed("payments", robot),
			refused(403, "spec.sudoers[0]", "ServiceAccount payments/robot lives in the tree of payments, whose users can all act as it"),
		},
		"RobotOfTheOperator": {"", grown(), nil, sudoed("payments", build.ServiceAccount("warren-system", "x")), refused(403, "spec.sudoers[0]")},
		"OwnRobotAsUser": {"", grown(), nil, build.Tenant("payments").UserSubjects(robot).Object(),
			refused(403, "spec.users[0]", "it can't be among the users")},
		"OwnRobotAsManager": {"", grown(), nil, build.Tenant("payments").ManagerSubjects(robot).Object(),
			refused(403, "spec.managers[0]", "it can't be among the managers")},
		"RobotHalted": {
			"users of the tree know its tokens", grown(noted(build.Child("x", "gone"), v1alpha1.AnnotationAncestry, "payments/gone/x")),
			sudoed("payments"),
			sudoed("payments", build.ServiceAccount("x", "robot")), refused(403, "ServiceAccount x/robot lives in the tree of payments"),
		},
		"RobotNowhere": {
			"whoever makes the namespace would get it", grown(), nil, sudoed("payments", build.ServiceAccount("ci", "deployer")),
			refused(403, "spec.sudoers[0]", "namespace ci does not exist"),
		},
		"RobotElsewhereJustNow": {"", grown().later(build.Namespace("ci")), nil, sudoed("payments", build.ServiceAccount("ci", "deployer")),
			allowed()},
		"RobotElsewhere": {"", grown(build.Namespace("ci")), nil, sudoed("payments", build.ServiceAccount("ci", "deployer")), allowed()},
		"TooMany": {"", grown(madeBy("alice", "a", "b")...).configured(most), nil, sudoed("c"),
			refused(403, "alice has 2 of 2 LNamespaces")},
		"TooManyOfOthers": {"", grown(append(madeBy("bob", "a"), madeBy("alice", "b")...)...).configured(most), nil, sudoed("c"), allowed()},
		"TooManyOfAdmin": {"", grown(madeBy("alice", "a", "b")...).configured(most).allowing("update lnamespaces"), nil, sudoed("c"),
			allowed()},
		"Unbilled": {"", grown().configured(asked), nil, sudoed("c"),
			refused(422, "spec.billing.costCenter: Required value", "spec.billing.owner: Required value")},
		"Misbilled": {"", grown().configured(asked), nil, billed("c", "x", "o"),
			refused(422, "spec.billing.costCenter: Invalid value", "^[0-9]{4}$")},
		"Billed":            {"", grown().configured(asked), nil, billed("c", "4711", "o"), allowed()},
		"BilledToAnother":   {"", grown().configured(three), nil, billed("c", "2", ""), allowed()},
		"BilledToNobody":    {"", grown().configured(three), nil, billed("c", "7", ""), refused(422, `"1"`, `"2"`, `"9"`)},
		"BilledToAStranger": {"not his", grown().configured(three), nil, billed("c", "3", ""), refused(422, "spec.billing.costCenter")},
		"BilledMixed":       {"", grown().configured(three), nil, billed("c", "1", "two"), refused(403, "must be those of one billing default")},
		"BilledByAdmin":     {"", grown().configured(three).allowing("update lnamespaces"), nil, billed("c", "7", ""), allowed()},
		"Everything": {"", grown(build.Namespace("legacy")).configured(asked), nil, sudoed("legacy", build.ServiceAccount("legacy", "x")),
			refused(422, "exists", "lives in the tree", "Required value")},

		"SudoerAdded": {"", grown(tenant(build.Tenant("payments"))...).with(bound("pay-web", "payments")), sudoed("payments"),
			sudoed("payments", build.ServiceAccount("pay-web", "robot")),
			refused(403, "ServiceAccount pay-web/robot lives in the tree of payments")},
		"SudoerListed": {"the tree grew around him; other edits go on", grown(), sudoed("payments", robot),
			sudoed("payments", robot, build.Group("g")), allowed()},
		"NobodyLeft":   {"", grown(), sudoed("t"), build.Tenant("t").Object(), allowed("only cluster admins can now edit")},
		"NobodyBefore": {"", grown(), build.Tenant("t").Object(), build.Tenant("t").Cascading().Object(), allowed()},
		"TemplateAdded": {"", grown(build.Namespace("base")), sudoed("t"), build.Tenant("t").Managers("m").Template("base").Object(),
			refused(422, "base is not a template namespace")},

		"Delete": {"", grown(tenant(build.Tenant("t"))...), owner(build.Tenant("t")), nil, allowed()},
		"HIER-L7 with webhooks, the removal of the only listed holder of a placed namespace from the lists has a Warning that names it": {
			"", holding().with(held("legacy", "mia")), build.Tenant("t").Managers("mia", "bob").Object(),
			build.Tenant("t").Managers("bob").Object(),
			allowed("these namespaces will leave the tree of tenant t, because its lists no longer name any subject that " +
				"administered them: legacy"),
		},
		"HIER-L7 with webhooks, the removal of a person from the lists has no Warning if another listed person holds the namespace": {
			"", holding().with(held("legacy", "mia", "bob")), build.Tenant("t").Managers("mia", "bob").Object(),
			build.Tenant("t").Managers("bob").Object(), allowed(),
		},
		"HIER-L7 with webhooks, the removal of a person who holds no placed namespace from the lists has no Warning": {
			"", holding().with(held("legacy", "bob")), build.Tenant("t").Managers("mia", "bob").Object(),
			build.Tenant("t").Managers("bob").Object(), allowed(),
		},
		"DeleteWithChildren": {"", grown(tenant(build.Tenant("t"))...).with(bound("w", "t")), owner(build.Tenant("t")), nil,
			refused(403, "t has sub-namespaces (w): delete them first or set allowCascadingDeletion")},
		"DeleteAllowedSoon": {"", grown(tenant(build.Tenant("t").Cascading())...).with(bound("w", "t")), owner(build.Tenant("t").Cascading()),
			nil, refused(503, "not in force yet")},
		"DeleteWithUnbound": {"", grown(tenant(build.Tenant("t"))...).with(build.Child("f", "t")), owner(build.Tenant("t")), nil,
			allowed("they stay")},
		"DeleteInConflict": {"the namespace is not its own", grown(build.Root("t"), bound("w", "t")), owner(build.Tenant("t")), nil, allowed()},
		"DeleteAgain":      {"", grown(tenant(build.Tenant("t"))...).with(bound("w", "t")), ending(owner(build.Tenant("t"))), nil, allowed()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, tc.c.as(t, alice, webhooks.PathLNamespaces, tc.old, tc.now))
		})
	}
}
