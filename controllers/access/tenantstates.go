package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// leavingTenants are those for which Withdraw was called. What a pass over such a tenant has planned to grant is not granted any more.
type leavingTenants struct {
	uids sync.Map // tenant → UID of the LNamespace
}

func (l *leavingTenants) note(tenant *v1alpha1.LNamespace) { l.uids.Store(tenant.Name, tenant.UID) }

func (l *leavingTenants) isLeaving(tenant *v1alpha1.LNamespace) bool {
	uid, ok := l.uids.Load(tenant.Name)
	return ok && uid.(types.UID) == tenant.UID
}

func (l *leavingTenants) forgetTenant(tenant string) { l.uids.Delete(tenant) }

// revocationClock measures from the change of an LNamespace to the first write that takes a right away.
type revocationClock struct {
	changed sync.Map // tenant → time.Time of the change of its LNamespace that hasn't been acted on yet
}

// noteChange begins to measure, unless an earlier change hasn't been acted on yet.
func (c *revocationClock) noteChange(tenant string) { c.changed.LoadOrStore(tenant, time.Now()) }

// timeRevocation ends the measurement if the changes take a right away.
func (c *revocationClock) timeRevocation(tenant string, changes []change) {
	for _, one := range changes {
		if len(grants.Minus(one.before, one.after)) == 0 {
			continue
		}
		if since, ok := c.changed.LoadAndDelete(tenant); ok {
			revocationSeconds.Observe(time.Since(since.(time.Time)).Seconds())
		}
	}
}

// forgetTenant ends the measurement without a figure.
func (c *revocationClock) forgetTenant(tenant string) { c.changed.Delete(tenant) }
