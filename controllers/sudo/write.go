package sudo

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// act carries out one step. An object that is there already, or gone already, is what the next look finds.
func (r *Reconciler) act(ctx context.Context, f *sudo.Facts, step sudo.Step) error {
	var err error
	switch step.Act {
	case sudo.WriteStatus:
		err = r.writeStatus(ctx, f, step.Status)
	case sudo.CreateTimer:
		err = r.client.Create(ctx, sudo.BuildTimer(f.Request, f.Tenant, step.Left))
	case sudo.CreateRole:
		err = r.client.Create(ctx, sudo.BuildRole(f.Request, f.Timer))
	case sudo.CreateBinding:
		err = r.client.Create(ctx, sudo.BuildBinding(f.Request, f.Timer))
	case sudo.DeleteBinding:
		err = r.delete(ctx, f.Binding)
	case sudo.DeleteRole:
		err = r.delete(ctx, f.Role)
	case sudo.DeleteTimer:
		err = r.delete(ctx, f.Timer)
	case sudo.DeleteRequest:
		err = r.delete(ctx, f.Request)
	}
	if err != nil {
		return fmt.Errorf("SudoRequest %s/%s: %s: %w", f.Request.Namespace, f.Request.Name, step.Act, err)
	}
	if step.Late && step.Act == sudo.DeleteBinding {
		r.announceLate(f)
	}
	return nil
}

// delete deletes exactly the object that was read. What a Job owns goes too: without a policy of propagation, the API server leaves it.
func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return client.IgnoreNotFound(r.client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy("Background")))
}

// writeStatus writes the status of a request, guarded by the version that was read.
func (r *Reconciler) writeStatus(ctx context.Context, f *sudo.Facts, status *v1alpha1.SudoRequestStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	for _, field := range []string{"startTime", "endTime", "timer"} {
		if _, set := fields[field]; !set {
			fields[field] = nil // a merge patch keeps what it doesn't name
		}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": f.Request.UID, "resourceVersion": f.Request.ResourceVersion},
		"status":   fields,
	})
	if err != nil {
		return err
	}
	is := f.Request.DeepCopy()
	patch := client.RawPatch(types.MergePatchType, body)
	if err := r.client.Status().Patch(ctx, is, patch, client.FieldOwner(v1alpha1.OperatorName)); err != nil {
		return err
	}
	r.announce(f, is)
	return nil
}
