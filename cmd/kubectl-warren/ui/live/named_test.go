package live

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// readerFunc answers Get alone.
type readerFunc func(name string, into client.Object) error

func (f readerFunc) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return f(key.Name, into)
}

func (readerFunc) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not asked")
}

func TestTenantThatMayNotBeWatched(t *testing.T) {
	t.Run("WEB-U15 the page reads the LNamespace that a manager may get and not watch, at most once in 8 s", func(t *testing.T) {
		now, requests := time.Now(), 0
		watched := readerFunc(func(name string, _ client.Object) error {
			return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("lnamespaces").GroupResource(), name, errors.New("no right to list"))
		})
		api := readerFunc(func(name string, into client.Object) error {
			requests++
			into.SetName(name)
			return nil
		})
		reader := newNamedTenants(api, func() time.Time { return now }).addTo(watched)
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {time.Second, 1}, {reviewInterval, 2}} {
			now = now.Add(step.after)
			tenant := &v1alpha1.LNamespace{}
			if err := reader.Get(t.Context(), client.ObjectKey{Name: "orders"}, tenant); err != nil || tenant.Name != "orders" || requests != step.want {
				t.Errorf("after %v: %v, name %q, %d requests, want %d", step.after, err, tenant.Name, requests, step.want)
			}
		}
		if err := reader.Get(t.Context(), client.ObjectKey{Name: "orders"}, &v1alpha1.SubNamespace{}); !apierrors.IsForbidden(err) {
			t.Errorf("another kind: %v", err)
		}
	})
}
