package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// leavingTenants holds the tenants for which Withdraw was called. A pass that planned to grant something to such a
// tenant must not grant it any more.
type leavingTenants struct {
	uids sync.Map // tenant → UID of the LNamespace
}

func (l *leavingTenants) recordTenant(tenant *v1alpha1.LNamespace) {
	l.uids.Store(tenant.Name, tenant.UID)
}

func (l *leavingTenants) isLeaving(tenant *v1alpha1.LNamespace) bool {
	uid, ok := l.uids.Load(tenant.Name)
	return ok && uid.(types.UID) == tenant.UID
}

func (l *leavingTenants) dropTenant(tenant string) { l.uids.Delete(tenant) }

// revocationClock measures the time from the change of an LNamespace to the first write that takes a right away.
type revocationClock struct {
	changed sync.Map // tenant → time.Time of the first change of its LNamespace since the last finished pass
}

// recordChange begins a measurement, unless one has begun already.
func (c *revocationClock) recordChange(tenant string) { c.changed.LoadOrStore(tenant, time.Now()) }

// timeRevocation ends and records the measurement if one of the changes takes a right away; otherwise the measurement
// goes on.
func (c *revocationClock) timeRevocation(tenant string, changes []change) {
	for _, one := range changes {
		if len(grants.Minus(grants.Subjects(one.before), grants.Subjects(one.after))) == 0 {
			continue
		}
		if since, ok := c.changed.LoadAndDelete(tenant); ok {
			revocationSeconds.Observe(time.Since(since.(time.Time)).Seconds())
		}
	}
}

// dropTenant ends the measurement without recording it.
func (c *revocationClock) dropTenant(tenant string) { c.changed.Delete(tenant) }
