package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// ErrNoRoot is the error of Read where it can neither list namespaces nor walk from a root.
var ErrNoRoot = errors.New("you may not list namespaces, and none of your tenants could be found: name a root")

// Read reads what a drawing shows, by four paged lists. For a user who may not list namespaces it walks from roots
// instead.
func Read(ctx context.Context, api client.Reader, roots ...string) (Facts, error) {
	view, err := gather.Forest(ctx, api)
	switch {
	case failure.Refused(err) && len(roots) == 0:
		return Facts{}, ErrNoRoot
	case failure.Refused(err):
		view, closed, unseen, err := gather.Walk(ctx, api, roots)
		return factsOf(ctx, api, view, closed, unseen, err)
	case err != nil:
		return Facts{}, err
	}
	facts := Facts{View: view, Unread: view.Unread}
	list := func(what string, objects client.ObjectList, take func(client.Object)) {
		if err == nil {
			err = facts.listObjects(ctx, api, what, objects, take)
		}
	}
	list("SubNamespaces", &v1alpha1.SubNamespaceList{}, func(object client.Object) {
		facts.View.Subs = append(facts.View.Subs, object.(*v1alpha1.SubNamespace))
	})
	list("LNamespaces", &v1alpha1.LNamespaceList{}, func(object client.Object) {
		facts.Tenants = append(facts.Tenants, object.(*v1alpha1.LNamespace))
	})
	return facts, err
}

// listObjects lists the objects of one kind, or records why it could not.
func (f *Facts) listObjects(ctx context.Context, api client.Reader, what string, list client.ObjectList,
	take func(client.Object)) error {
	err := gather.ListEach(ctx, api, list, take)
	switch {
	case failure.Unavailable(err), meta.IsNoMatchError(err):
		f.Unread = append(f.Unread, gather.DescribeUnread(what, err))
		return nil
	case err != nil:
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}

// ReadFound reads what a drawing shows to a user who may not list namespaces, below tops that gather.FindTops has
// found.
func ReadFound(ctx context.Context, api client.Reader, tops []string) (Facts, error) {
	if len(tops) == 0 {
		return Facts{}, ErrNoRoot
	}
	view, closed, unseen, err := gather.WalkFound(ctx, api, tops)
	return factsOf(ctx, api, view, closed, unseen, err)
}

// factsOf returns what a walk has found, with the LNamespaces of the roots.
func factsOf(ctx context.Context, api client.Reader, view tree.View, closed, unseen []string,
	err error) (Facts, error) {
	if err != nil {
		return Facts{}, err
	}
	facts := Facts{View: view}
	for _, name := range unseen {
		facts.Unread = append(facts.Unread, name+": without sudo you may read nothing here")
	}
	if len(closed) > 0 {
		facts.Unread = append(facts.Unread, "you may not list SubNamespaces in "+strings.Join(closed, ", ")+
			"; what may be below is not shown")
	}
	return facts, facts.readTenants(ctx, api)
}

// readTenants reads the LNamespaces of the roots in the view.
func (f *Facts) readTenants(ctx context.Context, api client.Reader) error {
	var names []string
	for node := range tree.Existing(f.View.All()) {
		if node.Type == tree.TypeRoot {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	found, refused := make([]*v1alpha1.LNamespace, len(names)), make([]string, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for i, name := range names {
		group.Go(func() error {
			tenant := &v1alpha1.LNamespace{}
			err := api.Get(ctx, client.ObjectKey{Name: name}, tenant)
			switch {
			case err == nil:
				found[i] = tenant
			case failure.Refused(err):
				refused[i] = "you may not read LNamespace " + name
			case !apierrors.IsNotFound(err):
				return fmt.Errorf("read LNamespace %s: %w", name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	f.Tenants = slices.DeleteFunc(found, func(tenant *v1alpha1.LNamespace) bool { return tenant == nil })
	f.Unread = append(f.Unread, slices.DeleteFunc(refused, func(sentence string) bool { return sentence == "" })...)
	return err
}
