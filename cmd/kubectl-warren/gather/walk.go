package gather

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// AtOnce is how many namespaces, kinds or tenants a command reads at the same time.
const AtOnce = 8

// step is a namespace that a walk reads: one that the user named (parent is ""), or a child that its parent's objects
// name.
type step struct {
	name, parent string
	bound        bool
	reported     bool // the operator reports that it is there, so it counts even if it can't be read
	found        bool // the user didn't name it: the user's rights, or an LNamespace, show that it is there
}

// sight is the result of a step.
type sight struct {
	namespace  *forest.Namespace // nil if it doesn't exist or isn't below the step's parent, or if nothing readable shows that it exists
	conditions []metav1.Condition
	closed     bool // the user may not read the namespace's children
	unseen     bool // the user may read nothing in a namespace at which the walk begins
	subs       []*v1alpha1.SubNamespace
	next       []step
}

// Walk goes down from the namespaces called names. In each it reads what a user without cluster-wide rights may read:
// its Namespace, its SubNamespaces, and the children that its HierarchyConfiguration reports. closed are the namespaces
// whose children the user may not read. unseen are the roots in which the user may read nothing, and whose LNamespace
// the user may read, as managers may: the view has them by their names alone.
func Walk(ctx context.Context, api client.Reader, names []string) (view tree.View, closed, unseen []string, err error) {
	var level []step
	for _, name := range names {
		level = append(level, step{name: name})
	}
	return readLevels(ctx, api, level)
}

// WalkFound is Walk from tops that FindTops has found, so that it asks for no LNamespace.
func WalkFound(ctx context.Context, api client.Reader,
	tops []string) (view tree.View, closed, unseen []string, err error) {
	var level []step
	for _, name := range tops {
		level = append(level, step{name: name, found: true})
	}
	return readLevels(ctx, api, level)
}

func readLevels(ctx context.Context, api client.Reader,
	level []step) (view tree.View, closed, unseen []string, err error) {
	view = EmptyView()
	view.Partial = true
	seen := map[step]bool{}
	for len(level) > 0 {
		level = slices.DeleteFunc(level, func(s step) bool {
			known := seen[s] || view.Forest.Namespace(s.name) != nil
			seen[s] = true
			return known
		})
		sights, err := readLevel(ctx, api, level)
		if err != nil {
			return view, nil, nil, err
		}
		level = nil
		for _, found := range sights {
			if found.namespace == nil {
				continue
			}
			view.Forest = view.Forest.WithNamespace(found.namespace)
			view.Conditions[found.namespace.Name] = found.conditions
			view.Subs = append(view.Subs, found.subs...)
			switch {
			case found.unseen:
				unseen = append(unseen, found.namespace.Name)
			case found.closed:
				closed = append(closed, found.namespace.Name)
			}
			level = append(level, found.next...)
		}
	}
	slices.Sort(closed)
	return view, closed, unseen, nil
}

// readLevel makes the steps of one level in parallel, and returns their results in the order of the steps.
func readLevel(ctx context.Context, api client.Reader, level []step) ([]sight, error) {
	sights := make([]sight, len(level))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for i, s := range level {
		group.Go(func() (err error) {
			if sights[i], err = s.readNamespaceSight(ctx, api); err == nil && sights[i].unseen && !s.found {
				err = checkHasTenant(ctx, api, s.name)
			}
			return err
		})
	}
	return sights, group.Wait()
}

// UnseenError is the name of a namespace that the user asked for and may not read.
type UnseenError string

func (e UnseenError) Error() string {
	return fmt.Sprintf("namespace %q does not exist, or you may not read it; ask a manager of the tenant for access",
		string(e))
}

// checkHasTenant returns an UnseenError unless the user may read the LNamespace called name, and so knows that its
// namespace is there.
func checkHasTenant(ctx context.Context, api client.Reader, name string) error {
	err := api.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.LNamespace{})
	if failure.Unavailable(err) {
		return UnseenError(name)
	}
	if err != nil {
		return fmt.Errorf("read LNamespace %s: %w", name, err)
	}
	return nil
}

func (s step) readNamespaceSight(ctx context.Context, api client.Reader) (sight, error) {
	namespace, unread, err := s.readNamespace(ctx, api)
	if err != nil || namespace == nil {
		return sight{}, err
	}
	found := sight{namespace: namespace}
	err = ListEach(ctx, api, &v1alpha1.SubNamespaceList{}, func(object client.Object) {
		sub := object.(*v1alpha1.SubNamespace)
		found.subs = append(found.subs, sub)
		found.next = append(found.next, step{name: sub.Name, parent: s.name, bound: true, reported: hasNamespace(sub)})
	}, client.InNamespace(s.name))
	if err != nil && !failure.Unavailable(err) {
		return sight{}, fmt.Errorf("list the SubNamespaces of %s: %w", s.name, err)
	}
	found.closed = failure.Refused(err)
	if unread && found.closed && s.parent == "" {
		found.unseen = true
		return found, nil
	}

	hierarchy, err := ReadHierarchy(ctx, api, s.name)
	if err != nil && !failure.Unavailable(err) {
		return sight{}, fmt.Errorf("read the HierarchyConfiguration of %s: %w", s.name, err)
	}
	if hierarchy == nil {
		return found, nil
	}
	found.conditions = hierarchy.Status.Conditions
	for _, child := range hierarchy.Status.Children {
		if !slices.ContainsFunc(found.next, func(n step) bool { return n.name == child }) {
			found.next = append(found.next, step{name: child, parent: s.name, reported: true})
		}
	}
	return found, nil
}

// readNamespace returns the namespace; nil if it doesn't exist, or not below the step's parent. If the user may not
// read it, readNamespace returns it as the parent's objects describe it, or nil if they don't report that it exists.
// Without a parent, it returns it as a root.
func (s step) readNamespace(ctx context.Context,
	api client.Reader) (namespace *forest.Namespace, unread bool, err error) {
	object, err := ReadNamespace(ctx, api, s.name)
	switch {
	case err == nil && (s.parent == "" || object.Labels[v1alpha1.LabelParent] == s.parent):
		return forest.NamespaceOf(object), false, nil
	case err == nil, apierrors.IsNotFound(err):
		return nil, false, nil
	case !failure.Refused(err):
		return nil, false, fmt.Errorf("read namespace %s: %w", s.name, err)
	case s.parent == "":
		return &forest.Namespace{Name: s.name, Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}, true, nil
	case !s.reported:
		return nil, true, nil
	}
	return s.unreadNamespace(), true, nil
}

// unreadNamespace returns the namespace as its parent describes it, without reading it.
func (s step) unreadNamespace() *forest.Namespace {
	labels := map[string]string{v1alpha1.LabelParent: s.parent}
	if s.bound {
		labels[v1alpha1.LabelBound] = v1alpha1.True
	}
	return &forest.Namespace{Name: s.name, Labels: labels}
}

// hasNamespace reports whether, by its status, a SubNamespace has made its namespace and the namespace is still there.
func hasNamespace(sub *v1alpha1.SubNamespace) bool {
	ready := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue ||
		ready.Reason == string(v1alpha1.ReasonNamespaceTerminating) || ready.Reason == string(v1alpha1.ReasonDeleting))
}
