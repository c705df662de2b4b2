package tree_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// view reads a forest from lines such as "pay-web parent=payments bound=true". The keys are labels without their
// domain; the word "terminating" means that the namespace is being deleted.
func view(lines string) tree.View {
	v := tree.View{Forest: forest.New(forest.Rules{}), Conditions: map[string][]metav1.Condition{}}
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		words := strings.Fields(line)
		n := &forest.Namespace{Name: words[0], Labels: map[string]string{}}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if key == "terminating" {
				n.Terminating = true
			} else {
				n.Labels[v1alpha1.Domain+"/"+key] = value
			}
		}
		v.Forest = v.Forest.WithNamespace(n)
	}
	return v
}

func condition(t v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.Reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: status, Reason: string(reason), Message: message}
}

func TestDraw(t *testing.T) {
	cases := map[string]struct {
		namespaces string
		conditions map[string][]metav1.Condition
		begin      []string
		want       string
	}{
		"SUB-X2 three roots, templates, a missing parent and a cycle are drawn, the cycle once": {
			namespaces: `
				shop type=root
				payments type=root template=base
				org type=root
				pay-web parent=payments bound=true
				pay-db parent=pay-web bound=true
				legacy parent=payments
				base type=template
				ci type=template template=base
				solo template=ci
				lost parent=gone bound=true
				lost-2 parent=lost
				c parent=b
				b parent=a
				a parent=c
				d parent=c bound=true
				plain`,
			want: `
org
payments
├── legacy
└── [s] pay-web
    └── [s] pay-db
shop
base (template)
└── ci (template)
    └── solo
a (cycle) (1)
└── b (cycle) (1)
    └── c (cycle) (1)
        └── [s] d (2)
(missing) gone
└── [s] lost (3)
    └── lost-2 (4)

[s] bound: deleting its SubNamespace deletes the namespace
(1) Halted=True (InCycle): a -> c -> b -> a
(2) Halted=True (AncestorHalted): ancestor c is halted (InCycle); resolve that first
(3) Halted=True (ParentMissing): parent namespace gone does not exist
(4) Halted=True (AncestorHalted): ancestor lost is halted (ParentMissing); resolve that first
`,
		},
		"what hangs below a terminating, a plain and a template namespace": {
			namespaces: `
				r type=root terminating
				x parent=r
				plain
				y parent=plain
				t type=template
				z parent=t
				i template=nosuch`,
			want: `
r (1)
└── x (2)
t (template)
└── z (3)
plain (not managed)
└── y (4)
(missing) nosuch
└── i (5)

(1) Terminating: the namespace is being deleted
(2) Halted=True (ParentTerminating): parent namespace r is being terminated
(3) Halted=True (ParentNotManaged): parent namespace t is neither a root nor a sub-namespace
(4) Halted=True (ParentNotManaged): parent namespace plain is neither a root nor a sub-namespace
(5) MetadataSynced=False (TemplateMissing): template nosuch does not exist
`,
		},
		"conditions of HierarchyConfigurations; one text is told once; Ready and good ones are not told": {
			namespaces: `
				r type=root
				x parent=r
				y parent=r`,
			conditions: map[string][]metav1.Condition{
				"r": {condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Settled", ""),
					condition(v1alpha1.ConditionPropagated, metav1.ConditionFalse, "DescendantConflict", "x, y")},
				"x": {condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConflict, "no"),
					condition(v1alpha1.ConditionPropagated, metav1.ConditionFalse, v1alpha1.ReasonConflict, "Secret db"),
					condition(v1alpha1.ConditionHalted, metav1.ConditionTrue, v1alpha1.ReasonParentReplaced, "stood in org/r")},
				"y": {condition(v1alpha1.ConditionHalted, metav1.ConditionFalse, "Active", ""),
					condition(v1alpha1.ConditionMetadataSynced, metav1.ConditionUnknown, v1alpha1.ReasonHalted, ""),
					condition(v1alpha1.ConditionPropagated, metav1.ConditionFalse, v1alpha1.ReasonConflict, "Secret db")},
			},
			want: `
r (1)
├── x (2,3)
└── y (3)

(1) Propagated=False (DescendantConflict): x, y
(2) Halted=True (ParentReplaced): stood in org/r
(3) Propagated=False (Conflict): Secret db
`,
		},
		"a tree that begins in the middle, and one in a cycle": {
			namespaces: `
				r type=root
				x parent=r
				y parent=x
				a parent=b
				b parent=a`,
			begin: []string{"x", "b", "x"},
			want: `
x
└── y
b (cycle) (1)
└── a (cycle) (1)

(1) Halted=True (InCycle): a -> b -> a
`,
		},
		"nothing": {namespaces: "default", want: "\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := view(c.namespaces)
			if c.conditions != nil {
				v.Conditions = c.conditions
			}
			nodes := v.All()
			if c.begin != nil {
				var err error
				if nodes, err = v.Below(c.begin); err != nil {
					t.Fatal(err)
				}
			}
			var text bytes.Buffer
			if err := tree.Draw(&text, nodes); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, "\n"+text.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBelowRefuses(t *testing.T) {
	v := view("r type=root\ndefault\nkube-system")
	cases := map[string]struct {
		names []string
		want  string
	}{
		"SUB-X2 a namespace that does not exist is an error": {[]string{"r", "nosuch"},
			`no such namespace: "nosuch"; kubectl warren tree shows all trees`},
		"namespaces that are in no tree": {[]string{"default", "r", "kube-system"},
			`not in a tree: "default", "kube-system"; only a root, a sub-namespace, a template or an instance of one can be listed`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes, err := v.Below(c.names)
			if err == nil || err.Error() != c.want || nodes != nil {
				t.Errorf("got %v, %v; want the error %q", nodes, err, c.want)
			}
		})
	}
}

func TestPartialViewJudgesNothing(t *testing.T) {
	v := view("x parent=r bound=true\ny parent=x")
	v.Partial = true
	v.Forest.Namespace("x").Labels[v1alpha1.TreeLabel("r")] = "3"
	v.Forest.Namespace("x").Labels[v1alpha1.TreeLabel("x")] = "0"
	nodes, err := v.Below([]string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := tree.DrawWide(&text, nodes); err != nil {
		t.Fatal(err)
	}
	want := `
NAME    TYPE            DEPTH   PHASE    TEMPLATE
[s] x   sub-namespace   3       Active   <none>
└── y   sub-namespace   4       Active   <none>

[s] bound: deleting its SubNamespace deletes the namespace
`
	if diff := cmp.Diff(want, "\n"+text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	v := view("r type=root\nx parent=r\nlost parent=gone")
	nodes, err := v.Below([]string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := tree.WriteNames(&text, append(v.All(), nodes...)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("namespace/r\nnamespace/x\nnamespace/lost\n", text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	got, err := json.Marshal(view("r type=root\nx parent=r bound=true\nlost parent=gone").All())
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"name":"r","type":"root","bound":false,"depth":0,"phase":"Active","conditions":[],"children":[` +
		`{"name":"x","type":"sub-namespace","bound":true,"depth":1,"phase":"Active","conditions":[],"children":[]}]},` +
		`{"name":"gone","type":"missing","bound":false,"conditions":[],"children":[` +
		`{"name":"lost","type":"sub-namespace","bound":false,"phase":"Active","conditions":[` +
		`{"type":"Halted","status":"True","reason":"ParentMissing","message":"parent namespace gone does not exist"}],"children":[]}]}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzAll draws forests of any shape. Drawing must end, and each namespace that belongs in a drawing appears exactly
// once.
func FuzzAll(f *testing.F) {
	f.Add([]byte{1, 2, 0})
	f.Add([]byte{0x80, 0, 1, 1, 0x45, 3})
	f.Fuzz(func(t *testing.T, edges []byte) {
		if len(edges) == 0 {
			return
		}
		var lines strings.Builder
		for i, edge := range edges {
			key := []string{"parent", "template", "parent=x type", "type"}[edge>>6]
			value := fmt.Sprintf("n%d", int(edge&0x3f)%(len(edges)+1)) // one of them doesn't exist
			if key == "type" {
				value = v1alpha1.TypeTemplate
			}
			fmt.Fprintf(&lines, "n%d %s=%s\n", i, key, value)
		}
		seen := map[string]int{}
		for n := range tree.Existing(view(lines.String()).All()) {
			seen[n.Name]++
		}
		for i := range edges {
			if name := fmt.Sprintf("n%d", i); seen[name] != 1 {
				t.Errorf("%s appears %d times in\n%s", name, seen[name], lines.String())
			}
		}
	})
}

func TestReferences(t *testing.T) {
	const want = `base (template)
├── ci (template)
│   └── solo
└── payments
x (template) (1)
└── y (template) (2)
(missing) gone
└── shop (3)

(1) MetadataSynced=False (TemplateMissing): template x is in a cycle
(2) MetadataSynced=False (TemplateMissing): template y is in a cycle
(3) MetadataSynced=False (TemplateMissing): template gone does not exist
`
	v := view(`
		payments type=root template=base
		pay-web parent=payments bound=true
		shop type=root template=gone
		org type=root
		base type=template
		ci type=template template=base
		solo template=ci
		x type=template template=y
		y type=template template=x`)
	v.References = true
	var text bytes.Buffer
	if err := tree.Draw(&text, v.All()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
