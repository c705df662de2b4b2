package ns

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// placement is a request for a place, with what a cluster admin must do before the operator may carry it out.
type placement struct {
	inv    *invocation.Invocation
	api    client.Client
	change change.Options
	name   string
	parent string // "" asks for a root

	// marked is the namespace if preparePlace has marked it; madeRoot reports whether it has made the parent a root.
	marked   *metav1.PartialObjectMetadata
	madeRoot bool
}

// preparePlace does what only a cluster admin may do, if the user is one. It makes a parent that is in no tree a root.
// It marks a namespace that is in no tree if policy strict-placement requires a mark.
func (p *placement) preparePlace(ctx context.Context) error {
	if admin, err := p.mayUpdateNamespaces(ctx); err != nil || !admin {
		return err // others may have no right to read the Namespaces
	}
	namespace, err := gather.ReadNamespace(ctx, p.api, p.name)
	if err != nil || standsThere(namespace, p.parent) {
		return client.IgnoreNotFound(err) // the write of the HierarchyConfiguration reports a missing namespace
	}
	if p.parent != "" {
		if err := p.makeParentRoot(ctx); err != nil {
			return err
		}
	}
	return p.markNamespace(ctx, namespace)
}

// standsThere reports whether the labels of a namespace make it a child of parent, or a root where parent is "".
func standsThere(namespace *metav1.PartialObjectMetadata, parent string) bool {
	if parent == "" {
		return namespace.Labels[v1alpha1.LabelType] == v1alpha1.TypeRoot
	}
	return namespace.Labels[v1alpha1.LabelParent] == parent
}

func (p *placement) mayUpdateNamespaces(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "update", Resource: "namespaces"},
	}}
	if err := p.api.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether you may update namespaces: %w", err)
	}
	return review.Status.Allowed, nil
}

// makeParentRoot makes the parent a root if it is in no tree and its HierarchyConfiguration asks for no place. If
// something else is wrong with the parent, the API server's answer to the request describes it.
func (p *placement) makeParentRoot(ctx context.Context) error {
	parent, err := gather.ReadNamespace(ctx, p.api, p.parent)
	if err != nil || !isPlain(parent) {
		return client.IgnoreNotFound(err)
	}
	if hc, err := gather.ReadHierarchy(ctx, p.api, p.parent); err != nil || hc != nil && hc.Spec.Parent != nil {
		return err
	}
	root, changed, err := change.Relabel(ctx, p.api, p.parent, p.change, func(now *metav1.PartialObjectMetadata) (change.Labels, error) {
		if now.UID != parent.UID || !isPlain(now) {
			return nil, nil
		}
		return change.Labels{v1alpha1.LabelType: v1alpha1.TypeRoot}, nil
	})
	if err != nil {
		return fmt.Errorf("making namespace %s a root: %w", p.parent, err)
	}
	p.madeRoot = changed
	return p.printChange(root, changed, "made a root")
}

// isPlain reports whether a namespace is in no tree and uses no template, and may join a tree.
func isPlain(namespace *metav1.PartialObjectMetadata) bool {
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate, v1alpha1.LabelProtected,
		v1alpha1.LabelReleased} {
		if namespace.Labels[key] != "" {
			return false
		}
	}
	return namespace.DeletionTimestamp == nil && namespace.Name != metav1.NamespaceDefault &&
		!strings.HasPrefix(namespace.Name, "kube-")
}

// markNamespace lets the namespace join the tree of the parent, or become a root, once. A namespace that has a place
// already needs no mark.
func (p *placement) markNamespace(ctx context.Context, namespace *metav1.PartialObjectMetadata) error {
	if namespace.Labels[v1alpha1.LabelType] != "" || namespace.Labels[v1alpha1.LabelParent] != "" {
		return nil
	}
	if strict, err := p.isStrict(ctx); err != nil || !strict {
		return err
	}
	uid := namespace.UID // a root of its own tree
	if p.parent != "" {
		above, err := gather.ReadNamespace(ctx, p.api, p.parent)
		if err != nil || change.RootOf(above) == "" {
			return client.IgnoreNotFound(err) // there is no tree yet that a mark could name
		}
		if uid, err = change.TreeUID(ctx, p.api, p.parent); err != nil {
			return err
		}
	}
	changed, err := change.Mark(ctx, p.api, namespace, uid, p.change)
	if err != nil {
		return fmt.Errorf("marking namespace %s: %w", p.name, err)
	}
	if changed {
		p.marked = namespace
	}
	return p.printChange(namespace, changed, "marked")
}

// isStrict reports whether policy strict-placement asks for a mark. It assumes so if the user may not find out.
func (p *placement) isStrict(ctx context.Context) (bool, error) {
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	err := p.api.Get(ctx, client.ObjectKey{Name: "warren-strict-placement"}, binding)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return err == nil, err
}

// printChange prints what was done to a namespace before the request; with --output only the request is printed.
func (p *placement) printChange(namespace *metav1.PartialObjectMetadata, changed bool, operation string) error {
	if !changed || p.change.PrintsObjects() {
		return nil
	}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return change.PrintDone(p.inv, namespace, p.change, operation)
}

// takeBack undoes what preparePlace did, after the request was refused. So nothing can use the mark later, and the
// parent is no root.
func (p *placement) takeBack(ctx context.Context, refusal error) error {
	if p.marked != nil {
		if _, err := change.Mark(ctx, p.api, p.marked, "", p.change); err != nil {
			return fmt.Errorf("%w; annotation %s of namespace %s is still set: remove it", refusal, v1alpha1.AnnotationAdopt,
				p.name)
		}
	}
	if p.madeRoot {
		_, _, err := change.Relabel(ctx, p.api, p.parent, p.change, func(*metav1.PartialObjectMetadata) (change.Labels, error) {
			return change.Labels{v1alpha1.LabelType: ""}, nil
		})
		if err != nil {
			return fmt.Errorf("%w; namespace %s is still a root; to undo this: kubectl warren set-type %s none", refusal,
				p.parent, p.parent)
		}
	}
	return refusal
}
