package authority_test

import (
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

// trait sets one property of a namespace in a test.
type trait func(*forest.Namespace)

func label(key, value string) trait { return func(n *forest.Namespace) { n.Labels[key] = value } }
func below(parent string) trait     { return label(v1alpha1.LabelParent, parent) }

func marked(mark string) trait {
	return func(n *forest.Namespace) { n.Annotations[v1alpha1.AnnotationAdopt] = mark }
}

func stood(ancestry string) trait {
	return func(n *forest.Namespace) { n.Annotations[v1alpha1.AnnotationAncestry] = ancestry }
}

var (
	root        = label(v1alpha1.LabelType, v1alpha1.TypeRoot)
	bound       = label(v1alpha1.LabelBound, v1alpha1.True)
	terminating = trait(func(n *forest.Namespace) { n.Terminating = true })
)

func namespace(name string, traits ...trait) *forest.Namespace {
	n := &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, t := range traits {
		t(n)
	}
	return n
}

// world returns the forest of docs/behaviour/hierarchy.md, with more namespaces.
func world(more ...*forest.Namespace) *forest.Snapshot {
	s := forest.New(forest.Rules{ProtectedName: func(name string) bool { return name == "default" || strings.HasPrefix(name, "kube-") }})
	one := int32(1)
	for _, tenant := range []string{"payments", "shop"} {
		s = s.WithTenant(&forest.Tenant{Name: tenant, UID: "uid-" + tenant, Limits: v1alpha1.Limits{SubNamespaces: &one}})
	}
	owned := func(tenant string) trait {
		return func(n *forest.Namespace) { n.Annotations[v1alpha1.AnnotationLNamespaceUID] = "uid-" + tenant }
	}
	for _, n := range append([]*forest.Namespace{
		namespace("org", root), namespace("team-a", below("org")), namespace("svc-1", below("team-a")), namespace("job", below("svc-1")),
		namespace("team-b", below("org")), namespace("other", root), namespace("lab", below("other")),
		namespace("payments", root, owned("payments")), namespace("pay-x", below("payments")),
		namespace("shop", root, owned("shop")), namespace("solo"),
	}, more...) {
		s = s.WithNamespace(n)
	}
	return s
}

// adm and cl are the texts by which the test cases below name two questions; written returns such a text for each question.
func adm(name string) string { return "adm(" + name + ")" }

const cl = "cl"

func written(questions []authority.Question) []string {
	var texts []string
	for _, q := range questions {
		switch q.Right {
		case authority.Administer:
			texts = append(texts, adm(q.Namespace))
		case authority.UpdateNamespaces:
			texts = append(texts, cl)
		case authority.ChangeTenant:
			texts = append(texts, "change("+q.Namespace+")")
		case authority.DoEverything:
			texts = append(texts, "all("+q.Namespace+")")
		case authority.CreateHierarchy:
			texts = append(texts, "create hierarchy in "+q.Namespace)
		default:
			texts = append(texts, string(q.Right))
		}
	}
	return texts
}
