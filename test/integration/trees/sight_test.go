package trees_test

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

// ns reads a Namespace, for Eventually.
func (c cluster) ns(name string) func(context.Context) (*corev1.Namespace, error) {
	return func(ctx context.Context) (*corev1.Namespace, error) {
		n := build.Namespace(name)
		return n, c.Admin().Get(ctx, client.ObjectKeyFromObject(n), n)
	}
}

// now returns the present state of a Namespace.
func (c cluster) now(ctx context.Context, name string) *corev1.Namespace {
	GinkgoHelper()
	n, err := c.ns(name)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return n
}

// secret reads a Secret, for Eventually.
func (c cluster) secret(namespace, name string) func(context.Context) (*corev1.Secret, error) {
	return func(ctx context.Context) (*corev1.Secret, error) {
		s := build.Secret(namespace, name, "")
		return s, c.Admin().Get(ctx, client.ObjectKeyFromObject(s), s)
	}
}

// read returns the present state of an object.
func (c cluster) read(ctx context.Context, object client.Object) client.Object {
	GinkgoHelper()
	Expect(c.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// holds reports whether a matcher matches the present HierarchyConfiguration of a namespace.
func (c cluster) holds(ctx context.Context, namespace string, said types.GomegaMatcher) bool {
	hc, err := c.hier(namespace)(ctx)
	if err != nil {
		return false
	}
	ok, err := said.Match(hc)
	return err == nil && ok
}

// selected are the names of the namespaces that a selector matches.
func (c cluster) selected(ctx context.Context, selector string) []string {
	GinkgoHelper()
	parsed, err := labels.Parse(selector)
	Expect(err).NotTo(HaveOccurred())
	list := &corev1.NamespaceList{}
	Expect(c.Admin().List(ctx, list, client.MatchingLabelsSelector{Selector: parsed})).To(Succeed())
	names := []string{}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

// sub reads a SubNamespace, written as parent/name.
func (c cluster) sub(text string) func(context.Context) (*v1alpha1.SubNamespace, error) {
	sub := subNamespace(text)
	return func(ctx context.Context) (*v1alpha1.SubNamespace, error) {
		read := &v1alpha1.SubNamespace{}
		return read, c.Admin().Get(ctx, client.ObjectKeyFromObject(sub), read)
	}
}

// condition reads a condition of an object, and say matches one.
var condition, say = words.Condition, words.HaveCondition

// carry and lack match an object by its labels, noted and unnoted by its annotations.
func carry(key, value string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Labels", HaveKeyWithValue(key, value))
}

func lack(key string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Labels", Not(HaveKey(key)))
}

func noted(key, value string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Annotations", HaveKeyWithValue(key, value))
}

func unnoted(key string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Annotations", Not(HaveKey(key)))
}

func terminating() types.GomegaMatcher {
	return HaveField("ObjectMeta.DeletionTimestamp", Not(BeNil()))
}

func active() types.GomegaMatcher { return HaveField("ObjectMeta.DeletionTimestamp", BeNil()) }

// standing matches a namespace that the operator has labelled as one at that depth of the tree of root.
func standing(root, depth string) types.GomegaMatcher {
	return carry(v1alpha1.TreeLabel(root), depth)
}

// hier reads the HierarchyConfiguration of a namespace.
func (c cluster) hier(namespace string) func(context.Context) (*v1alpha1.HierarchyConfiguration, error) {
	return func(ctx context.Context) (*v1alpha1.HierarchyConfiguration, error) {
		read := build.Hierarchy(namespace)
		return read, c.Admin().Get(ctx, client.ObjectKeyFromObject(read), read)
	}
}

func beReady() types.GomegaMatcher {
	return say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNamespaceActive)
}

// settled matches a HierarchyConfiguration of a namespace in a tree which reports that nothing is wrong.
func settled() types.GomegaMatcher {
	return say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSettled)
}

// unready matches a HierarchyConfiguration that reports a problem in a condition, and in Ready.
func unready(t v1alpha1.ConditionType, reason v1alpha1.Reason, parts ...string) types.GomegaMatcher {
	bad := metav1.ConditionFalse
	if t == v1alpha1.ConditionHalted {
		bad = metav1.ConditionTrue
	}
	return And(say(t, bad, reason, parts...), say(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, parts...))
}

// wait matches a SubNamespace that isn't ready, but will be without help.
func wait(reason v1alpha1.Reason, parts ...string) types.GomegaMatcher {
	return And(say(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, parts...),
		WithTransform(condition(v1alpha1.ConditionStalled), BeZero()))
}

// stall matches a SubNamespace that isn't ready until a human acts.
func stall(reason v1alpha1.Reason, parts ...string) types.GomegaMatcher {
	return And(say(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, parts...),
		say(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, parts...))
}

// history holds the versions of Namespaces as a watch brings them.
type history struct {
	mu     sync.Mutex
	events []watch.Event
}

// follow watches Namespaces from now until the case ends.
func (c cluster) follow(ctx context.Context, options ...client.ListOption) *history {
	GinkgoHelper()
	w, err := c.Admin().Watch(ctx, &corev1.NamespaceList{}, options...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	h := &history{}
	go func() {
		for event := range w.ResultChan() {
			h.mu.Lock()
			h.events = append(h.events, event)
			h.mu.Unlock()
		}
	}()
	return h
}

func called(name string) client.ListOption {
	return client.MatchingFields{"metadata.name": name}
}

// versions are the versions of one Namespace so far.
func (h *history) versions(name string) []*corev1.Namespace {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*corev1.Namespace
	for _, event := range h.events {
		if n, ok := event.Object.(*corev1.Namespace); ok && n.Name == name {
			all = append(all, n)
		}
	}
	return all
}

// most is the largest number of Namespaces that existed at any moment.
func (h *history) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	there, most := map[string]bool{}, 0
	for _, event := range h.events {
		n, ok := event.Object.(*corev1.Namespace)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			delete(there, n.Name)
		} else {
			there[n.Name] = true
		}
		most = max(most, len(there))
	}
	return most
}

// writes reads the operator's writes since a mark to these Namespaces, or in them, one line each: verb, resource, name. It leaves out
// SubNamespaces and HierarchyConfigurations, because their statuses report changes that the case itself has made.
func (c cluster) writes(since audit.Position, namespaces ...string) func(context.Context) ([]string, error) {
	return c.writesThat(since, func(r audit.Request) bool {
		return slices.Contains(namespaces, r.Namespace) && r.Resource != "subnamespaces" && r.Resource != "hierarchyconfigurations"
	})
}

// namespaceWrites reads the operator's writes to the Namespaces themselves.
func (c cluster) namespaceWrites(since audit.Position, names ...string) func(context.Context) ([]string, error) {
	return c.writesThat(since, func(r audit.Request) bool {
		return r.Resource == "namespaces" && slices.Contains(names, r.Name)
	})
}

// requests reads all of the operator's requests since a mark, reads too, for these Namespaces or for objects in them.
func (c cluster) requests(since audit.Position, namespaces ...string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := c.Requests(ctx, since)
		var lines []string
		for _, r := range all {
			// The API server's log gives a Namespace its own name as its namespace.
			if r.User == controlplane.Operator && slices.Contains(namespaces, r.Namespace) {
				lines = append(lines, r.String())
			}
		}
		return lines, err
	}
}

func (c cluster) writesThat(since audit.Position, concern func(audit.Request) bool) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := c.Writes(ctx, since)
		var lines []string
		for _, r := range all {
			if concern(r) {
				lines = append(lines, r.String())
			}
		}
		return lines, err
	}
}

// quiet expects no write of the operator to these Namespaces, or in them.
func (c cluster) quiet(ctx context.Context, d time.Duration, namespaces ...string) {
	GinkgoHelper()
	Consistently(c.writes(c.Mark(ctx), namespaces...)).WithContext(ctx).
		WithTimeout(test.Quiet(d)).WithPolling(500 * time.Millisecond).Should(BeEmpty())
}
