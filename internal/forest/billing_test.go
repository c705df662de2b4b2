package forest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

const (
	costKey  = "finance.example/cost-center"
	ownerKey = "finance.example/owner"
)

var owned = annotation(v1alpha1.AnnotationLNamespaceUID, "u")

func payer(costCenter, owner string) *forest.Tenant {
	return &forest.Tenant{Name: "r", UID: "u", CostCenter: costCenter, Owner: owner}
}

// billed returns a forest with tenant t, whose rules name the billing labels.
func billed(t *forest.Tenant, namespaces ...*forest.Namespace) *forest.Snapshot {
	r := rules()
	r.InheritLabel, r.SubLabel = globs("team", costKey), globs("app", costKey)
	r.Billing = forest.BillingKeys{CostCenter: costKey, Owner: ownerKey}
	return grown(namespaces...).WithRules(r).WithTenant(t)
}

func TestBillingLabels(t *testing.T) {
	r, c := namespace("r", root, owned, placed("r")), namespace("c", below("r"), placed("r/c"))
	with := func(n *forest.Namespace, traits ...trait) *forest.Namespace {
		w := written(n, forest.Change{})
		for _, t := range traits {
			t(w)
		}
		return w
	}
	both := costKey + "," + ownerKey
	cases := map[string]struct {
		reason string
		tenant *forest.Tenant
		grown  []*forest.Namespace
		sub    *forest.Sub
		want   patch
	}{
		"Written": {
			reason: "in the whole tree, noted as the operator's", tenant: payer("4711", "pay-leads"), grown: some(r, c),
			want: patch{keys{costKey: "4711", ownerKey: "pay-leads"}, keys{inheritedKey: both}},
		},
		"Changed": {
			reason: "in one write", tenant: payer("4712", "shop-leads"),
			grown: some(r, with(c, label(costKey, "4711"), label(ownerKey, "pay-leads"), inherited(both))),
			want:  patch{keys{costKey: "4712", ownerKey: "shop-leads"}, nil},
		},
		"Settled": {
			reason: "nothing is written twice", tenant: payer("4711", ""), grown: some(r, with(c, label(costKey, "4711"), inherited(costKey))),
		},
		"NothingStated": {
			reason: "a field that says nothing takes its label off", tenant: payer("", ""),
			grown: some(r, with(c, label(costKey, "4711"), inherited(costKey))), want: patch{keys{costKey: "-"}, keys{inheritedKey: "-"}},
		},
		"NoValueOfALabel": {
			reason: "and what stood there goes: it would be wrong now", tenant: payer("4711", "pay-leads@example.com"),
			grown: some(r, with(c, label(costKey, "4711"), label(ownerKey, "pay-leads"), inherited(both))),
			want:  patch{keys{ownerKey: "-"}, keys{inheritedKey: costKey}},
		},
		"TakenByHand": {
			reason: "what somebody set is left alone", tenant: payer("4711", ""), grown: some(r, with(c, label(costKey, "shared"))),
		},
		"SameByHand": {
			reason: "and stays theirs", tenant: payer("4711", ""), grown: some(r, with(c, label(costKey, "4711"))),
		},
		"TakenByTemplate": {
			reason: "what flows in by the configuration is left alone", tenant: payer("4711", ""),
			grown: some(namespace("base", template, label(costKey, "shared")), with(r, references("base")), c),
			want:  patch{keys{costKey: "shared"}, keys{inheritedKey: costKey}},
		},
		"TemplateUnknown": {
			reason: "what came from the billing is not frozen with what came from a template", tenant: &forest.Tenant{Name: "r", UID: "u",
				Template: "gone", CostCenter: "4712"},
			grown: some(with(r, references("gone"), label(costKey, "4711"), inherited(costKey)),
				with(c, label(costKey, "4711"), inherited(costKey))),
			want: patch{keys{costKey: "4712"}, nil},
		},
		"NotBySubNamespace": {
			reason: "nobody who may make a SubNamespace says who pays", tenant: payer("4711", ""), grown: some(r, with(c, bound)),
			sub:  &forest.Sub{Parent: "r", Name: "c", Labels: keys{costKey: "0"}},
			want: patch{keys{costKey: "4711"}, keys{inheritedKey: costKey}},
		},
		"NobodysTree": {
			reason: "a tree without an LNamespace pays nothing", tenant: payer("4711", ""),
			grown: some(namespace("r", root, placed("r")), with(c, label(costKey, "4711"), inherited(costKey))),
			want:  patch{keys{costKey: "-"}, keys{inheritedKey: "-"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := billed(tc.tenant, tc.grown...)
			if tc.sub != nil {
				s = s.WithSub(tc.sub)
			}
			change := forest.DesiredChange(s, "c")
			if diff := cmp.Diff(tc.want, patchOf(change), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDesired: -want, +got:\n%s", tc.reason, diff)
			}
			if again := forest.DesiredChange(s.WithNamespace(written(s.Namespace("c"), change)), "c"); !again.Empty() {
				t.Errorf("a second write is wanted: %v", patchOf(again))
			}
			if tc.sub != nil {
				if diff := cmp.Diff([]string{costKey}, forest.RefusedKeys(s, "c")); diff != "" {
					t.Errorf("RefusedKeys: -want, +got:\n%s", diff)
				}
			}
		})
	}
}

// A namespace that leaves the tree loses the billing labels. A new sub-namespace is created with them.
func TestBillingLabelsComeAndGo(t *testing.T) {
	s := billed(payer("4711", ""), namespace("r", root, owned, placed("r")), namespace("left", label(costKey, "4711"), inherited(costKey)))
	if diff := cmp.Diff(patch{keys{costKey: "-"}, keys{inheritedKey: "-"}}, patchOf(forest.DesiredChange(s, "left")),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("left: -want, +got:\n%s", diff)
	}
	if got := forest.NewChild(s, &forest.Sub{Parent: "r", Name: "c"}).Labels[costKey]; got != "4711" {
		t.Errorf("a new sub-namespace has cost center %q", got)
	}
	if got := forest.NewRoot(billed(payer("4711", "")), payer("4711", "")).Labels[costKey]; got != "4711" {
		t.Errorf("a new root has cost center %q", got)
	}
}

// A change of who pays affects the whole tree, and no other namespace.
func TestBillingLabelsConcern(t *testing.T) {
	all := some(namespace("r", root, owned), namespace("c", below("r")), namespace("d", below("c")), namespace("other", root))
	old := billed(payer("4711", ""), all...)
	same := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	for costCenter, want := range map[string][]string{"4711": {"r"}, "4712": {"c", "d", "r"}} {
		if diff := cmp.Diff(want, forest.AffectedNamespaces(old.WithTenant(payer(costCenter, "")), old, "r"), same); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", costCenter, diff)
		}
	}
	plain := grown(all...).WithTenant(payer("4711", ""))
	if diff := cmp.Diff([]string{"r"}, forest.AffectedNamespaces(plain.WithTenant(payer("4712", "")), plain, "r"), same); diff != "" {
		t.Errorf("without labels of billing: -want, +got:\n%s", diff)
	}
}

func TestBillingLabelProblems(t *testing.T) {
	s := billed(payer("4711", "pay leads"), namespace("base", template, label(costKey, "shared")),
		namespace("r", root, owned, references("base")),
		namespace("c", below("r"), label(costKey, "4711")), namespace("d", below("c"), label(costKey, "shared"), inherited(costKey)),
		namespace("e", below("gone"), label(costKey, "7")), namespace("f", below("r"), label(costKey, "8"), terminating))
	invalid, taken := forest.BillingLabelProblems(s, "r")
	if diff := cmp.Diff([]forest.BillingLabel{{Key: ownerKey, Field: "spec.billing.owner", Value: "pay leads"}}, invalid); diff != "" {
		t.Errorf("invalid: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{costKey: {"d"}}, taken); diff != "" {
		t.Errorf("taken, of what stands there: -want, +got:\n%s", diff)
	}
	behind := billed(payer("4712", ""), namespace("r", root, owned, label(costKey, "4711"), inherited(costKey)),
		namespace("c", below("r"), label(costKey, "7")))
	if _, taken := forest.BillingLabelProblems(behind, "r"); !cmp.Equal(map[string][]string{costKey: {"c"}}, taken) {
		t.Errorf("what the operator is about to change is not taken: %v", taken)
	}
}
