package forest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// ruled computes how namespaces should end, by the text of the specification, with plain recursion over the labels. It checks the package
// independently, and shares no code with it. It leaves out LNamespaces.
type ruled struct{ facts *forest.Snapshot }

// all returns every namespace as it should be in the end.
func (r ruled) all() map[string]*forest.Namespace {
	result := map[string]*forest.Namespace{}
	for name := range r.facts.All() {
		result[name] = r.end(name)
	}
	return result
}

func (r ruled) get(name string) *forest.Namespace { return r.facts.Namespace(name) }

func (r ruled) guarded(name string) bool {
	return r.get(name).Labels[v1alpha1.LabelProtected] == "true" || strings.HasPrefix(name, "kube-")
}

// sound reports whether the labels of a namespace are valid and don't contradict each other.
func (r ruled) sound(name string) bool {
	l := r.get(name).Labels
	t := l[v1alpha1.LabelType]
	return (t == "" || t == "root" || t == "template") && (t == "" || l[v1alpha1.LabelParent] == "") &&
		!strings.ContainsAny(l[v1alpha1.LabelParent]+l[v1alpha1.LabelTemplate], "_,@")
}

// path returns the namespaces from the root to name, or nil if there is no such path. seen are the names that the recursion has passed.
func (r ruled) path(name string, seen ...string) []string {
	n := r.get(name)
	if n == nil || slices.Contains(seen, name) || r.guarded(name) || !r.sound(name) || len(seen) > 0 && n.Terminating {
		return nil
	}
	parent := n.Labels[v1alpha1.LabelParent]
	if parent == "" {
		if n.Labels[v1alpha1.LabelType] != "root" {
			return nil
		}
		return []string{name}
	}
	up := r.path(parent, append(seen, name)...)
	if up == nil {
		return nil
	}
	return append(slices.Clone(up), name)
}

// with returns the namespaces, in alphabetical order, that have the label with that value.
func (r ruled) with(label, value string) []string {
	var found []string
	for _, name := range slices.Sorted(r.facts.All()) {
		if r.get(name).Labels[label] == value {
			found = append(found, name)
		}
	}
	return found
}

// below returns all namespaces from which the labels parent lead up to name, halted or not, without name itself.
func (r ruled) below(name string) []string {
	var found []string
	for _, other := range slices.Sorted(r.facts.All()) {
		seen := []string{other}
		for at := r.get(other); other != name && at != nil; at = r.get(seen[len(seen)-1]) {
			parent := at.Labels[v1alpha1.LabelParent]
			if parent == name {
				found = append(found, other)
			}
			if parent == name || slices.Contains(seen, parent) {
				break
			}
			seen = append(seen, parent)
		}
	}
	return found
}

// chained reports whether the templates above a namespace all exist and are sound.
func (r ruled) chained(name string, seen ...string) bool {
	up := r.get(name).Labels[v1alpha1.LabelTemplate]
	if up == "" {
		return true
	}
	t := r.get(up)
	return t != nil && !t.Terminating && !r.guarded(up) && t.Labels[v1alpha1.LabelType] == "template" &&
		t.Labels[v1alpha1.LabelParent] == "" &&
		up != name && !slices.Contains(seen, up) && r.chained(up, append(seen, name)...)
}

func (r ruled) end(name string) *forest.Namespace {
	before := r.get(name)
	n := written(before, forest.Change{})
	parent, member := before.Labels[v1alpha1.LabelParent], before.Labels[v1alpha1.LabelTemplate] != ""
	switch before.Labels[v1alpha1.LabelType] {
	case "root", "template":
		member = true
	}
	halted := member && !r.sound(name) || parent != "" && r.path(name) == nil
	if before.Terminating || r.guarded(name) || halted {
		return n
	}
	maps.DeleteFunc(n.Labels, func(key, _ string) bool { return strings.HasSuffix(key, treeKey) })
	delete(n.Annotations, ancestryKey)
	delete(n.Annotations, parentUIDKey)
	if path := r.path(name); path != nil {
		if parent != "" {
			n.Annotations[parentUIDKey] = v1alpha1.DigestUID(r.get(parent).UID)
		}
		for i, ancestor := range path {
			n.Labels[ancestor+treeKey] = fmt.Sprint(len(path) - 1 - i)
		}
		n.Annotations[ancestryKey] = strings.Join(path, "/")
	}
	if sub := r.facts.Sub(parent, name); sub == nil || parent == "" || before.Labels[v1alpha1.LabelBound] != "true" || !sub.Deleting {
		delete(n.Annotations, cascadingKey)
	}
	r.endKeys(n, before, member || parent != "")
	return n
}

// endKeys sets every inherited key to its final value. From above come the labels team and env and the annotation memo.
func (r ruled) endKeys(n, before *forest.Namespace, member bool) {
	var noted []string
	for _, key := range []string{"@memo", "@note", "app", "env", "foo", "memo", "team", "tier"} {
		now, bare := n.Labels, key
		if strings.HasPrefix(key, "@") {
			now, bare = n.Annotations, key[1:]
		}
		own, stands := r.own(before, key)
		value, wanted := "", false
		if member {
			value, wanted = r.given(before, key)
		}
		switch {
		case wanted && stands && own == value: // the user's own value, which is the same
		case wanted:
			now[bare] = value
			noted = append(noted, key)
		case !stands:
			delete(now, bare)
		}
	}
	if delete(n.Annotations, inheritedKey); len(noted) > 0 {
		n.Annotations[inheritedKey] = strings.Join(noted, ",")
	}
}

func (r ruled) own(n *forest.Namespace, key string) (string, bool) {
	if slices.Contains(strings.Split(n.Annotations[inheritedKey], ","), key) {
		return "", false
	}
	return standing(n, key)
}

func standing(n *forest.Namespace, key string) (string, bool) {
	if bare, ok := strings.CutPrefix(key, "@"); ok {
		value, ok := n.Annotations[bare]
		return value, ok
	}
	value, ok := n.Labels[key]
	return value, ok
}

// given returns the value that rules 1 and 2 of the specification give a namespace for key.
func (r ruled) given(n *forest.Namespace, key string) (string, bool) {
	parent, l := n.Labels[v1alpha1.LabelParent], n.Labels
	if sub := r.facts.Sub(parent, n.Name); sub != nil && parent != "" && l[v1alpha1.LabelBound] == "true" &&
		slices.Contains([]string{"team", "app", "@memo", "@note"}, key) {
		if value, ok := standing(&forest.Namespace{Labels: sub.Labels, Annotations: sub.Annotations}, key); ok {
			return value, true
		}
	}
	if !slices.Contains([]string{"team", "env", "@memo"}, key) {
		return "", false
	}
	up := parent
	if up == "" {
		if up = l[v1alpha1.LabelTemplate]; up == "" {
			return "", false
		}
		if !r.chained(n.Name) { // the value that came from the template stays
			value, ok := standing(n, key)
			_, theirs := r.own(n, key)
			return value, ok && !theirs
		}
	}
	if value, ok := r.given(r.get(up), key); ok {
		return value, true
	}
	return r.own(r.get(up), key)
}
