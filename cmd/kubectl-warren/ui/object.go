package ui

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/internal/configfile"
)

func (v *server) serveObject(w http.ResponseWriter, r *http.Request) {
	namespace, resource, name := r.PathValue("namespace"), r.PathValue("resource"), r.PathValue("name")
	frame := v.newFrame(resource+" "+name+" in "+namespace, namespace)
	found, unread, err := v.readReach(r.Context(), namespace, resource, name)
	frame.Body, frame.Unread = found, unread
	v.writeFrame(w, "object", frame, err)
}

// readReach finds in which namespaces a source has copies.
func (v *server) readReach(ctx context.Context, namespace, resource, name string) (*trace.Reach, []string, error) {
	if err := checkName("namespace", namespace); err != nil {
		return nil, nil, err
	}
	reading := v.newReading()
	mapping, err := reading.FindMapping(resource)
	if err != nil {
		return nil, nil, err
	}
	if kind := mapping.GroupVersionKind.GroupKind(); mapping.Scope.Name() != meta.RESTScopeNameNamespace ||
		!configfile.CanBePropagated(kind) {
		return nil, nil, fmt.Errorf("%w: %s are never propagated", errUnknownPage, mapping.Resource.GroupResource())
	}
	api, err := reading.Connect()
	if err != nil {
		return nil, nil, err
	}
	view, err := gather.Below(ctx, api, namespace)
	if err != nil {
		return nil, nil, err
	}
	objects, err := reading.ConnectDiscovering()
	if err != nil {
		return nil, nil, err
	}
	found, err := trace.ReadReach(ctx, objects, view, mapping.GroupVersionKind, namespace, name)
	return found, reading.describeUnread(), err
}
