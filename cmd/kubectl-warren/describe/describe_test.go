package describe_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

type keys = map[string]string

// namespace returns a namespace. It prefixes the keys of labels, except team and app, with Warren's domain.
func namespace(name string, labels, annotations keys) *forest.Namespace {
	all := keys{}
	for key, value := range labels {
		if key != "team" && key != "app" {
			key = v1alpha1.Domain + "/" + key
		}
		all[key] = value
	}
	return &forest.Namespace{Name: name, Labels: all, Annotations: annotations}
}

func view(partial bool, namespaces ...*forest.Namespace) tree.View {
	v := tree.View{Forest: forest.New(forest.Rules{}), Conditions: map[string][]metav1.Condition{}, Partial: partial}
	for _, n := range namespaces {
		v.Forest = v.Forest.WithNamespace(n)
	}
	return v
}

// payments returns a template and the three namespaces of a tree that references it. Label team comes from the
// template, annotation memo from the root, and label app from the SubNamespace of pay-web. What is below pay-web may be
// deleted with it.
func payments() []*forest.Namespace {
	return []*forest.Namespace{
		namespace("base", keys{"type": "template", "team": "neco"}, nil),
		namespace("payments", keys{"type": "root", "template": "base", "team": "neco"}, keys{v1alpha1.AnnotationInherited: "team", "memo": "x"}),
		namespace("pay-web", keys{"parent": "payments", "bound": "true", "team": "neco", "app": "web"}, keys{
			v1alpha1.AnnotationInherited: "app,team,@memo", v1alpha1.AnnotationCascading: "true", "memo": "x",
		}),
		namespace("pay-db", keys{"parent": "pay-web", "bound": "true", "team": "neco", "app": "web"}, keys{
			v1alpha1.AnnotationInherited: "app,gone,team,@memo", v1alpha1.AnnotationAncestry: "payments/pay-web/pay-db", "memo": "x",
		}),
	}
}

func TestInherited(t *testing.T) {
	all := payments()
	cases := map[string]struct {
		view tree.View
		name string
		want []describe.Inherited
	}{
		"from the template, the root and a SubNamespace above": {view(false, all...), "pay-db", []describe.Inherited{
			{"label", "app", "web", "SubNamespace payments/pay-web"}, {"label", "team", "neco", "base"}, {"annotation", "memo", "x", "payments"},
		}},
		"from the template": {view(false, all...), "payments", []describe.Inherited{{"label", "team", "neco", "base"}}},
		"from a template that can't be read": {view(true, all[1:]...), "pay-web", []describe.Inherited{
			{"label", "app", "web", "SubNamespace payments/pay-web"}, {"label", "team", "neco", "base"}, {"annotation", "memo", "x", "payments"},
		}},
		"SUB-X24 describe shows a label that follows spec.billing as coming from the LNamespace, whatever template the root has": {
			view(false, all[0], namespace("payments", keys{"type": "root", "template": "base", "app": "4711"},
				keys{v1alpha1.AnnotationInherited: "app", v1alpha1.AnnotationLNamespaceUID: "uid"})),
			"payments", []describe.Inherited{{"label", "app", "4711", "LNamespace payments"}},
		},
		"nothing": {view(false, all...), "base", []describe.Inherited{}},
		"in a cycle": {view(false,
			namespace("a", keys{"parent": "b", "team": "x"}, keys{v1alpha1.AnnotationInherited: "team"}),
			namespace("b", keys{"parent": "a", "team": "x"}, keys{v1alpha1.AnnotationInherited: "team"})),
			"a", []describe.Inherited{{"label", "team", "x", "a"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe.Of(c.view, c.name, nil, true).Inherited); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOf(t *testing.T) {
	three, two, one := int32(3), int32(2), 1
	tenant := &v1alpha1.LNamespace{
		Spec:   v1alpha1.LNamespaceSpec{Limits: &v1alpha1.Limits{SubNamespaces: &three}},
		Status: v1alpha1.LNamespaceStatus{SubNamespaces: 2, Budget: &v1alpha1.BudgetStatus{}},
	}
	want := &describe.Namespace{
		Name: "pay-web", Type: tree.TypeSubNamespace, Root: "payments", Parent: "payments", Bound: true, Depth: &one, Phase: tree.PhaseActive,
		Children: []string{"pay-db"}, Instances: []string{}, Cascading: describe.Cascading{Allowed: true, By: "pay-web"},
		Budget:    tenant.Status.Budget,
		Limits:    &describe.Limits{SubNamespaces: describe.Usage{Used: two, Limit: &three}, Depth: describe.Usage{Used: 1}},
		Resources: []describe.Resource{}, Conflicts: []trace.Obstacle{}, Conditions: []metav1.Condition{}, Events: []describe.Event{},
	}
	cases := map[string]struct {
		view  tree.View
		known bool
		want  *describe.Limits
	}{
		"all is seen":                {view(false, payments()...), true, want.Limits},
		"the tenant counts":          {view(true, payments()...), true, want.Limits},
		"the tenant can't be read":   {view(true, payments()...), false, nil},
		"all but the tenant is seen": {view(false, payments()...), false, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := describe.Of(c.view, "pay-web", tenant, c.known)
			got.Inherited, want.Limits = nil, c.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if describe.Of(view(false), "nosuch", nil, true) != nil {
		t.Error("what doesn't exist is described")
	}
	if got := describe.Of(view(true, payments()[3]), "pay-db", nil, false); got.Root != "payments" || got.Cascading.Allowed {
		t.Errorf("alone: %+v", got)
	}
}

func TestWrite(t *testing.T) {
	d := describe.Of(view(false, append(payments(), namespace("legacy", keys{"parent": "gone"}, nil))...), "pay-db", nil, true)
	d.Resources = []describe.Resource{
		{Kind: "Secret", Name: "key", From: "payments", Mode: "update"}, {Kind: "Secret", Name: "own", Mode: "create"},
	}
	d.Conflicts = []trace.Obstacle{{Kind: "Role", Name: "dev", From: "payments"}}
	const want = `Name:                 pay-db
Type:                 sub-namespace
Phase:                Active
Root:                 payments
Parent:               pay-web
Template:             <none>
Bound:                true
Depth:                2
Children:             <none>
Instances:            <none>
Cascading deletion:   allowed by pay-web
Limits:               sub-namespaces 2 (no limit in LNamespace; see configuration), depth 2 (no limit in LNamespace; see configuration)
Inherited:
  KIND         KEY    VALUE   FROM
  label        app    web     SubNamespace payments/pay-web
  label        team   neco    base
  annotation   memo   x       payments
Resources:
  KIND     NAME   FROM                                                                         MODE
  Secret   key    payments                                                                     update
  Secret   own    (source)                                                                     create
  Role     dev    (no copy from payments: another object has that name; rename or delete it)   
Conditions:  <none>
Events:  <none>
`
	var text bytes.Buffer
	if err := d.Write(&text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSourcesOfKindsThatAreNotCopied(t *testing.T) {
	t.Run("PROP-E12 describe marks a source above of which the namespace gets no copy because of its kind, and such a source in the "+
		"namespace", func(t *testing.T) {
		d := describe.Of(view(false, payments()...), "payments", nil, true)
		d.Resources = []describe.Resource{
			{Kind: "LimitRange", Name: "limits", From: "base", Mode: "update", Problem: "unlisted"},
			{Kind: "LimitRange", Name: "own", Mode: "update", Problem: "unlisted"},
		}
		var text bytes.Buffer
		if err := d.Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"limits   (no copy from base: unlisted)   update\n", "own      (not copied: unlisted)          update\n"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is missing:\n%s", want, text.String())
			}
		}
	})
}

func TestBudgetText(t *testing.T) {
	amounts := func(cpu, pods string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods), corev1.ResourceRequestsCPU: resource.MustParse(cpu)}
	}
	const want = "pods 37 of 100, requests.cpu 1500m of 20"
	if got := describe.BudgetText(&v1alpha1.BudgetStatus{Hard: amounts("20", "100"), Used: amounts("1500m", "37")}); got != want {
		t.Error(got)
	}
}

func TestLimitsThatAreNotShown(t *testing.T) {
	v := view(false, append(payments(), namespace("plain", nil, nil), namespace("legacy", keys{"parent": "gone"}, nil))...)
	for name, want := range map[string]string{"plain": "<none>", "base": "<none>", "legacy": "<unknown>", "pay-db": "<unknown>"} {
		var text bytes.Buffer
		if err := describe.Of(v, name, nil, false).Write(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "\nLimits:               "+want+"\n") {
			t.Errorf("%s lacks limits %s:\n%s", name, want, text.String())
		}
	}
}

// Tenants may create Events, but neither the number nor the length of Events decides how much is shown.
func TestManyLongEvents(t *testing.T) {
	t.Run("SEC-X41 of 250 Events of 1 MiB, the newest 100 are shown, at most 1 KiB of each text; the number that "+
		"is left out is known", func(t *testing.T) {
		var events []describe.Event
		for i := range 250 {
			made := &corev1.Event{Type: "Normal", Reason: strconv.Itoa(i), Message: strings.Repeat("'", 1<<20)}
			made.LastTimestamp = metav1.NewTime(time.Unix(int64(250-i), 0))
			events = append(events, describe.EventOf(made))
		}
		newest, leftOut := describe.Newest(events)
		if len(newest) != 100 || leftOut != 150 || newest[0].Reason != "99" || newest[99].Reason != "0" {
			t.Errorf("%d Events from %s to %s, %d left out", len(newest), newest[0].Reason, newest[len(newest)-1].Reason, leftOut)
		}
		if size := len(newest[0].Message); size > 1024 {
			t.Errorf("a message of %d bytes", size)
		}
	})
}

func TestDescriptionOfAShare(t *testing.T) {
	t.Run("QUOTA-77 describe tells what a pod must set, where the share counts it and no LimitRange has defaults", func(t *testing.T) {
		d := describe.Namespace{Name: "pay-web", Share: &quota.Share{Namespace: "pay-web", Holds: []string{"pods: 1 used of a share of 2"},
			Undefaulted: []corev1.ResourceName{"requests.cpu"}}}
		var out bytes.Buffer
		if err := d.Write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"pods: 1 used of a share of 2\n",
			"requests.cpu: a pod that does not set this in each container is refused"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q", out.String(), want)
			}
		}
	})
}
