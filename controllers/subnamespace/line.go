package subnamespace

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// waiter is a SubNamespace that a limit of its tree holds back.
type waiter struct {
	key     types.NamespacedName
	created time.Time
}

func waiterOf(sub *v1alpha1.SubNamespace) waiter {
	return waiter{key: client.ObjectKeyFromObject(sub), created: sub.CreationTimestamp.Time}
}

// compareAge compares SubNamespaces by age, then by namespace and name: the older one sorts first.
func compareAge(a, b waiter) int {
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// lines are the waiting lines of SubNamespaces that a limit of a tree holds back. Each tree has two: tooLow for its
// limit of depth, noRoom for its limit of sub-namespaces. A SubNamespace is in one line at most: a line of the tree in
// which its namespace would be. The callers add it only if nothing but the limit stops it: in line noRoom, the younger
// ones behind it have to wait for it.
type lines struct {
	rootOf map[types.NamespacedName]string   // by SubNamespace
	tooLow map[string][]types.NamespacedName // by root: those that would exceed the tree's limit of depth
	noRoom map[string][]waiter               // by root: those that wait for room, oldest first
}

func newLines() *lines {
	return &lines{rootOf: map[types.NamespacedName]string{}, tooLow: map[string][]types.NamespacedName{}, noRoom: map[string][]waiter{}}
}

// isEmpty reports whether no limit holds any SubNamespace back.
func (l *lines) isEmpty() bool { return len(l.rootOf) == 0 }

// lineOf returns the root of the tree in whose line for room a SubNamespace waits, or "".
func (l *lines) lineOf(key types.NamespacedName) (root string) {
	if root = l.rootOf[key]; slices.ContainsFunc(l.noRoom[root], func(w waiter) bool { return w.key == key }) {
		return root
	}
	return ""
}

// countAhead returns how many older SubNamespaces wait for room in the tree of root.
func (l *lines) countAhead(root string, w waiter) int {
	n, _ := slices.BinarySearchFunc(l.noRoom[root], w, compareAge)
	return n
}

// waitForRoom puts w in the line of root, and in no other.
func (l *lines) waitForRoom(root string, w waiter) {
	if _, there := slices.BinarySearchFunc(l.noRoom[root], w, compareAge); there && l.rootOf[w.key] == root {
		return
	}
	l.dropSub(w.key)
	line := l.noRoom[root]
	n, _ := slices.BinarySearchFunc(line, w, compareAge)
	l.noRoom[root], l.rootOf[w.key] = slices.Insert(line, n, w), root
}

// waitForDepth records that w waits for a higher limit of depth of the tree of root.
func (l *lines) waitForDepth(root string, w waiter) {
	if l.rootOf[w.key] == root && slices.Contains(l.tooLow[root], w.key) {
		return
	}
	l.dropSub(w.key)
	l.tooLow[root], l.rootOf[w.key] = append(l.tooLow[root], w.key), root
}

// dropSub takes a SubNamespace out of the lines, and returns the root in whose line it was, or "".
func (l *lines) dropSub(key types.NamespacedName) (root string) {
	root, there := l.rootOf[key]
	if !there {
		return ""
	}
	delete(l.rootOf, key)
	l.noRoom[root] = slices.DeleteFunc(l.noRoom[root], func(w waiter) bool { return w.key == key })
	l.tooLow[root] = slices.DeleteFunc(l.tooLow[root], func(k types.NamespacedName) bool { return k == key })
	if len(l.noRoom[root]) == 0 {
		delete(l.noRoom, root)
	}
	if len(l.tooLow[root]) == 0 {
		delete(l.tooLow, root)
	}
	return root
}

// listTree returns all SubNamespaces that a limit of the tree of root holds back.
func (l *lines) listTree(root string) []types.NamespacedName {
	keys := slices.Clone(l.tooLow[root])
	for _, w := range l.noRoom[root] {
		keys = append(keys, w.key)
	}
	return keys
}
