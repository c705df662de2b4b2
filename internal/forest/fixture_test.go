package forest_test

import (
	"maps"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// trait sets one property of a namespace in a test.
type trait func(*forest.Namespace)

func label(key, value string) trait { return func(n *forest.Namespace) { n.Labels[key] = value } }
func annotation(key, value string) trait {
	return func(n *forest.Namespace) { n.Annotations[key] = value }
}

func below(parent string) trait    { return label(v1alpha1.LabelParent, parent) }
func typed(t string) trait         { return label(v1alpha1.LabelType, t) }
func references(name string) trait { return label(v1alpha1.LabelTemplate, name) }
func inherited(keys string) trait  { return annotation(v1alpha1.AnnotationInherited, keys) }

var (
	root        = typed(v1alpha1.TypeRoot)
	template    = typed(v1alpha1.TypeTemplate)
	bound       = label(v1alpha1.LabelBound, v1alpha1.True)
	protected   = label(v1alpha1.LabelProtected, v1alpha1.True)
	cascading   = annotation(v1alpha1.AnnotationCascading, v1alpha1.True)
	terminating = trait(func(n *forest.Namespace) { n.Terminating = true })
)

// placed adds what the operator derives from a namespace's path: tree labels, ancestry, and the parent's UID.
func placed(ancestry string) trait {
	return func(n *forest.Namespace) {
		names := strings.Split(ancestry, "/")
		for i, name := range names {
			n.Labels[name+".tree.tenancy.warren.dev/depth"] = string(rune('0' + len(names) - 1 - i))
		}
		n.Annotations[v1alpha1.AnnotationAncestry] = ancestry
		if len(names) > 1 {
			n.Annotations[v1alpha1.AnnotationParentUID] = v1alpha1.DigestUID("uid-" + names[len(names)-2])
		}
	}
}

func namespace(name string, traits ...trait) *forest.Namespace {
	n := &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, t := range traits {
		t(n)
	}
	return n
}

// rules returns rules by which a tree inherits team, env, memo and all keys of the domain glob.example. A SubNamespace may set team and
// app.
func rules() forest.Rules {
	return forest.Rules{
		InheritLabel:      globs("team", "env", "glob.example/*", "*kubernetes.io/*", "*/*"),
		InheritAnnotation: globs("memo", "*/*"),
		SubLabel:          globs("team", "app", "pod-security.kubernetes.io/*", "*/*"),
		SubAnnotation:     globs("memo", "note"),
		ProtectedName:     globs("kube-*", "default"),
	}
}

func globs(patterns ...string) func(string) bool {
	return func(key string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, key)
			return ok
		})
	}
}

func grown(namespaces ...*forest.Namespace) *forest.Snapshot {
	s := forest.New(rules())
	for _, n := range namespaces {
		s = s.WithNamespace(n)
	}
	return s
}

// written returns n after the merge patch c.
func written(n *forest.Namespace, c forest.Change) *forest.Namespace {
	w := *n
	w.Labels, w.Annotations = patched(n.Labels, c.Labels), patched(n.Annotations, c.Annotations)
	return &w
}

func patched(old map[string]string, patch map[string]*string) map[string]string {
	now := map[string]string{}
	maps.Copy(now, old)
	for key, value := range patch {
		if value == nil {
			delete(now, key)
		} else {
			now[key] = *value
		}
	}
	return now
}

// settled writes the DesiredChange of every namespace, in the given order, again and again until nothing is left to write. ok is false if
// that takes more than 100 rounds.
func settled(s *forest.Snapshot, order []string) (after *forest.Snapshot, writes int, ok bool) {
	for range 100 {
		quiet := true
		for _, name := range order {
			if c := forest.DesiredChange(s, name); !c.Empty() {
				s, quiet = s.WithNamespace(written(s.Namespace(name), c)), false
				writes++
			}
		}
		if quiet {
			return s, writes, true
		}
	}
	return s, writes, false
}
