package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/test/build"
)

// fixture is the forest of the specification: two tenants, a template with an instance, a placed namespace, a cycle, a missing parent, a
// conflict, and a SubNamespace whose name is taken.
func fixture() graph.Facts {
	facts := graph.Facts{View: gather.EmptyView(), Unread: []string{"you may not list HierarchyConfigurations"}}
	for name, labels := range map[string]string{
		"payments": "type=root template=base", "pay-web": "parent=payments bound=true", "pay-db": "parent=pay-web bound=true",
		"legacy": "parent=payments", "shop": "type=root", "taken": "", "org": "type=root", "base": "type=template", "ci": "template=base",
		"lost": "parent=gone bound=true", "a": "parent=b", "b": "parent=a", "default": "", "dying": "parent=shop bound=true",
	} {
		n := &forest.Namespace{Name: name, UID: name, Labels: map[string]string{}, Annotations: map[string]string{}, Terminating: name == "dying"}
		for _, word := range strings.Fields(labels) {
			key, value, _ := strings.Cut(word, "=")
			n.Labels[v1alpha1.Domain+"/"+key] = value
		}
		if name == "payments" || name == "shop" {
			n.Annotations[v1alpha1.AnnotationLNamespaceUID] = "lns-" + name
		}
		facts.View.Forest = facts.View.Forest.WithNamespace(n)
	}
	facts.View.Conditions["pay-web"] = []metav1.Condition{bad(v1alpha1.ConditionPropagated, v1alpha1.ReasonConflict, "Secret db stands in the way")}
	taken := build.SubNamespace("payments", "taken")
	taken.Status.Conditions = []metav1.Condition{bad(v1alpha1.ConditionReady, v1alpha1.ReasonConflict, "namespace taken exists outside of this tree")}
	facts.View.Subs = []*v1alpha1.SubNamespace{taken, build.SubNamespace("payments", "pay-web")}
	facts.Tenants = []*v1alpha1.LNamespace{
		tenant(build.Tenant("payments").Users("alice").Managers("mia").Sudoers("bob").Object()),
		tenant(build.Tenant("shop").Users("dave").Object()),
		tenant(build.Tenant("late").Users("erin").Object()),
	}
	facts.Tenants[1].Status.Conditions = []metav1.Condition{bad(v1alpha1.ConditionAccessReady, v1alpha1.ReasonConflict, "User dave is refused")}
	return facts
}

func tenant(object *v1alpha1.LNamespace) *v1alpha1.LNamespace {
	object.UID = types.UID("lns-" + object.Name)
	return object
}

func bad(t v1alpha1.ConditionType, reason v1alpha1.Reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
}

// about is where and when the fixture was read.
var about = graph.About{Context: "prod", Reader: "admin", Time: time.Unix(1700000000, 0)}

func buildForest(t *testing.T, facts graph.Facts, roots ...string) *graph.Forest {
	t.Helper()
	f, err := graph.Build(facts, roots...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lines are the rows of a forest, indented by their depth.
func lines(rows []*graph.Row) string {
	var all strings.Builder
	for _, row := range rows {
		all.WriteString(strings.Repeat("  ", row.Level-1) + row.Name + ": " + strings.Join(append([]string{row.Words, row.Below, row.People}, row.Problems...), "|") + "\n")
		all.WriteString(lines(row.Children))
	}
	return all.String()
}

func TestRows(t *testing.T) {
	const want = `
org: root||
payments: tenant, template base|4 below|managers: User mia; users: User alice; sudoers: User bob
  legacy: placed||
  pay-web: sub-namespace|1 below||Propagated=False (Conflict): Secret db stands in the way
    pay-db: sub-namespace||
  taken: SubNamespace without namespace|||Ready=False (Conflict): namespace taken exists outside of this tree
shop: tenant|1 below|managers: nobody; users: User dave; sudoers: nobody|AccessReady=False (Conflict): User dave is refused
  dying: sub-namespace, terminating||
base: template|1 below|
  ci: instance, template base||
a: placed, (cycle)|1 below||Halted=True (InCycle): a -> b -> a
  b: placed, (cycle)|||Halted=True (InCycle): a -> b -> a
gone: (missing)|1 below|
  lost: sub-namespace|||Halted=True (ParentMissing): parent namespace gone does not exist
late: LNamespace without namespace||managers: nobody; users: User erin; sudoers: nobody
`
	f := buildForest(t, fixture())
	if diff := cmp.Diff(want, "\n"+lines(f.Rows(graph.RowOptions{People: true, OpenLevels: -1}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(graph.Counts{Tenants: 2, Namespaces: 12, Problems: 6, Rows: 15}, f.Counts); diff != "" {
		t.Errorf("counts: -want +got:\n%s", diff)
	}
}

// Trees that overlap are drawn once.
func TestRootsWithinOneAnother(t *testing.T) {
	for _, roots := range [][]string{{"pay-web", "payments"}, {"payments", "pay-web", "payments"}} {
		f := buildForest(t, fixture(), roots...)
		if len(f.Trees) != 1 || f.Trees[0].Name != "payments" {
			t.Errorf("%v: got %d trees", roots, len(f.Trees))
		}
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	var svg bytes.Buffer
	if _, err := buildForest(t, fixture()).WriteSVG(&svg, graph.Options{About: about, People: true, Depth: -1}); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("WEB-G1 %v", err)
		}
	}
}
