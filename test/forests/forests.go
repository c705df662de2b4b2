// Package forests makes forests for tests of drawings and pages: that of the specification, one with hostile texts, and large ones.
package forests

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/test/build"
)

// Hostile texts, which a page must show and not obey.
const (
	HostileUser    = "</script><img src=x onerror=alert(1)>"
	HostileMessage = "]]> --> \" ' ` <!-- <b> %%{init} #quot; \u202e </title></style>"
)

// Specified is the forest of the specification: two tenants, a template with an instance, a placed namespace, a cycle, a missing parent, a
// conflict, a SubNamespace whose name is taken, and an LNamespace that has no namespace yet.
func Specified() graph.Facts {
	facts := graph.Facts{View: gather.EmptyView(), Unread: []string{"you may not list HierarchyConfigurations"}}
	for name, labels := range map[string]string{
		"payments": "type=root template=base", "pay-web": "parent=payments bound=true", "pay-db": "parent=pay-web bound=true",
		"legacy": "parent=payments", "shop": "type=root", "taken": "", "org": "type=root", "base": "type=template", "ci": "template=base",
		"lost": "parent=gone bound=true", "a": "parent=b", "b": "parent=a", "default": "", "dying": "parent=shop bound=true",
	} {
		add(&facts, name, labels)
	}
	facts.View.Forest.Namespace("dying").Terminating = true
	facts.View.Conditions["pay-web"] = []metav1.Condition{Bad(v1alpha1.ConditionPropagated, v1alpha1.ReasonConflict,
		"Secret db stands in the way")}
	taken := build.SubNamespace("payments", "taken")
	taken.Status.Conditions = []metav1.Condition{Bad(v1alpha1.ConditionReady, v1alpha1.ReasonConflict,
		"namespace taken exists outside of this tree")}
	facts.View.Subs = []*v1alpha1.SubNamespace{taken, build.SubNamespace("payments", "pay-web")}
	AddTenant(&facts, build.Tenant("payments").Users("alice").Managers("mia").Sudoers("bob").Object())
	AddTenant(&facts, build.Tenant("shop").Users("dave").Object())
	AddTenant(&facts, build.Tenant("late").Users("erin").Object())
	facts.Tenants[1].Status.Conditions = []metav1.Condition{Bad(v1alpha1.ConditionAccessReady, v1alpha1.ReasonConflict,
		"User dave is refused")}
	return facts
}

// Hostile is the specified forest with HostileUser as the user of a tenant and HostileMessage in a condition.
func Hostile() graph.Facts {
	facts := Specified()
	facts.Tenants[0].Spec.Users = build.Users(HostileUser)
	facts.View.Conditions["pay-web"][0].Message = HostileMessage
	return facts
}

// Sized is a forest of n namespaces: tenants with 2 to 40 sub-namespaces on up to four levels below the root; the last may have fewer. Each
// fifteenth namespace has a conflict, unless it is a root.
func Sized(n int) graph.Facts {
	facts := graph.Facts{View: gather.EmptyView()}
	for made, team := 0, 0; made < n; team++ {
		root := fmt.Sprintf("team-%04d", team)
		add(&facts, root, "type=root")
		AddTenant(&facts, build.Tenant(root).Users("alice").Managers("mia").Object())
		made++
		for i := range min(n-made, 2+team*7%39) {
			parent := root
			if i > 2 {
				parent = fmt.Sprintf("%s-%02d", root, (i-1)/3)
			}
			name := fmt.Sprintf("%s-%02d", root, i)
			add(&facts, name, "parent="+parent+" bound=true")
			if made++; made%15 == 0 {
				facts.View.Conditions[name] = []metav1.Condition{Bad(v1alpha1.ConditionPropagated, v1alpha1.ReasonConflict, "Secret db is in the way")}
			}
		}
	}
	return facts
}

// add adds a namespace with labels of our domain.
func add(facts *graph.Facts, name, labels string) {
	n := &forest.Namespace{Name: name, UID: name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for word := range strings.FieldsSeq(labels) {
		key, value, _ := strings.Cut(word, "=")
		n.Labels[v1alpha1.Domain+"/"+key] = value
	}
	facts.View.Forest = facts.View.Forest.WithNamespace(n)
}

// AddTenant adds an LNamespace. If a namespace has its name, it becomes the root of that LNamespace.
func AddTenant(facts *graph.Facts, tenant *v1alpha1.LNamespace) {
	tenant.UID = types.UID("lns-" + tenant.Name)
	if root := facts.View.Forest.Namespace(tenant.Name); root != nil {
		root.Annotations[v1alpha1.AnnotationLNamespaceUID] = string(tenant.UID)
	}
	facts.Tenants = append(facts.Tenants, tenant)
}

// Bad returns a condition whose status is False.
func Bad(t v1alpha1.ConditionType, reason v1alpha1.Reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
}
