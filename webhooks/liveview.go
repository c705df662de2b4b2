package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

// liveView is what the rules know besides the object that they judge: the shared view, completed by reads from the API
// server.
type liveView struct {
	view View
	live client.Reader
}

// mostMissing is how many of the namespaces that a request names may turn out not to exist before the others are no
// longer read: the request is refused in any case, and hundreds of reads, one after the other, would outlast the timeout of
// the webhook.
const mostMissing = 16

// snapshotWith returns the forest. Those of the named namespaces that it lacks are read from the API server and added:
// a namespace that the user has just created must not be called missing. Each is read once. After mostMissing that do
// not exist, the rest counts as missing, too.
func (l liveView) snapshotWith(ctx context.Context, names ...string) (*forest.Snapshot, error) {
	s, missing := l.view.Snapshot(), map[string]bool{"": true}
	for _, name := range names {
		if missing[name] || s.Namespace(name) != nil {
			continue
		}
		if len(missing) > mostMissing {
			break
		}
		n, err := l.readNamespace(ctx, name)
		if err != nil {
			return nil, err
		}
		if n == nil {
			missing[name] = true
			continue
		}
		s = s.WithNamespace(n)
	}
	return s, nil
}

// readNamespace reads a namespace from the API server; nil if there is none.
func (l liveView) readNamespace(ctx context.Context, name string) (*forest.Namespace, error) {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := l.live.Get(ctx, client.ObjectKey{Name: name}, n); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, readFailedError("namespace "+name, err)
	}
	return forest.NamespaceOf(n), nil
}

// readHierarchyOf reads the HierarchyConfiguration of a namespace from the API server; nil if it has none.
func readHierarchyOf(ctx context.Context, live client.Reader, namespace string) (*v1alpha1.HierarchyConfiguration, error) {
	hc := &v1alpha1.HierarchyConfiguration{}
	switch err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}, hc); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, readFailedError("the HierarchyConfiguration of namespace "+namespace, err)
	}
	return hc, nil
}

func readFailedError(what string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("could not read %s: %w", what, err))
}

// recheckDeletionLive returns f, the judgement on the deletion of the namespace called name. Children may forbid the
// deletion although a spec already allows it, because the namespaces don't carry that permission yet. Then
// recheckDeletionLive returns an error that asks the client to retry: a refusal would be outdated a second later.
func (l liveView) recheckDeletionLive(ctx context.Context, s *forest.Snapshot, name string, f findings) (findings, error) {
	if len(forest.HoldingChildren(s, name)) == 0 {
		return f, nil
	}
	for _, at := range append(authority.Above(s, name), name) {
		soon, err := l.allowsCascading(ctx, s, at)
		if err != nil {
			return f, err
		}
		if soon {
			return f, askToRetry("allowCascadingDeletion of " + at + " is not in force yet; try again")
		}
	}
	return f, nil
}

// allowsCascading reads from the API server whether the HierarchyConfiguration or the LNamespace of a namespace allows
// cascading deletion.
func (l liveView) allowsCascading(ctx context.Context, s *forest.Snapshot, name string) (bool, error) {
	hc, err := readHierarchyOf(ctx, l.live, name)
	if err != nil || hc != nil && hc.Spec.AllowCascadingDeletion {
		return err == nil, err
	}
	if s.TenantOf(name) == nil {
		return false, nil
	}
	lns := &v1alpha1.LNamespace{}
	err = l.live.Get(ctx, client.ObjectKey{Name: name}, lns)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, readFailedError("LNamespace "+name, err)
	}
	return err == nil && lns.Spec.AllowCascadingDeletion, nil
}

// requestingUser returns the user who made the request that a validator judges.
func requestingUser(ctx context.Context) (authenticationv1.UserInfo, error) {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return authenticationv1.UserInfo{}, apierrors.NewInternalError(err)
	}
	return req.UserInfo, nil
}
