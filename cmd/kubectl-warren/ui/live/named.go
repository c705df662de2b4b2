package live

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
)

// namedTenants reads the LNamespaces that the caller may get by their names, and may not watch: a manager has no other
// right to them. Walks follow one another every second, so each answer is kept for reviewInterval. mu guards kept.
type namedTenants struct {
	api client.Reader
	now func() time.Time

	mu   sync.Mutex
	kept map[string]keptTenant
}

type keptTenant struct {
	tenant *v1alpha1.LNamespace
	err    error
	until  time.Time
}

func newNamedTenants(api client.Reader, now func() time.Time) *namedTenants {
	return &namedTenants{api: api, now: now, kept: map[string]keptTenant{}}
}

// addTo returns a reader of everything that watched reads, and of the LNamespaces that watched may not.
func (n *namedTenants) addTo(watched client.Reader) client.Reader {
	return namedReader{Reader: watched, tenants: n}
}

type namedReader struct {
	client.Reader
	tenants *namedTenants
}

// Get implements client.Reader.
func (r namedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	if tenant, is := object.(*v1alpha1.LNamespace); is && failure.Refused(err) {
		return r.tenants.read(ctx, key.Name, tenant)
	}
	return err
}

func (n *namedTenants) read(ctx context.Context, name string, into *v1alpha1.LNamespace) error {
	n.mu.Lock()
	kept, known := n.kept[name]
	n.mu.Unlock()
	if now := n.now(); !known || !now.Before(kept.until) {
		kept = keptTenant{tenant: &v1alpha1.LNamespace{}, until: now.Add(reviewInterval)}
		kept.err = n.api.Get(ctx, client.ObjectKey{Name: name}, kept.tenant)
		n.mu.Lock()
		n.kept[name] = kept
		n.mu.Unlock()
	}
	kept.tenant.DeepCopyInto(into)
	return kept.err
}
