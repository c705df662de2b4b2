// Package fairqueue is a work queue that tenants share. However much work one tenant has, the others wait for it as
// little as possible, in the queue and at the API server.
//
// The caller describes each key by its Attributes. Order decides which key is next:
//   - Tenants take turns, one key a turn.
//   - Within a tenant, keys of a lower class come first.
//   - Within a class, lanes take turns. The lane of a copy is its source.
//
// Queue hands the next key to a worker, within limits. The limits are strict while the queue is contended, that is,
// while a second tenant has work:
//   - A tenant occupies two workers at most, those for heavy work aside.
//   - Heavy work, which sends large bodies, occupies a budget of bytes that all tenants share, also during a rest after each body.
//   - Urgent work is never limited: it revokes rights, or sends no request.
//
// A key that may not begin waits in its place, and occupies no worker.
//
// An example with eight workers: acme adds 3,000 copies of one Secret, beta adds 100 copies of a ConfigMap of 1 MiB,
// and coral adds one copy.
//
//	acme   s1 s2 s3 …   class 2, lane "Secret acme/db"
//	beta   c1 c2 c3 …   class 2, lane "ConfigMap beta/ca", weight 1 MiB
//	coral  x            class 2, lane "Secret coral/token"
//
// The queue hands out s1, c1, x and s2. Then acme occupies its two workers, and c1 the whole budget of bytes, so four
// workers are free for whatever coral, or a fourth tenant, adds next. When s1 ends, s3 begins. When c1 ends after 100
// ms, beta rests for 200 ms; then c2 begins. If acme deletes a RoleBinding meanwhile, the deletions of its copies are
// urgent and begin at once. Five seconds after the last key of beta and coral, acme is alone and has all eight workers.
//
// Two ready-made parts were tried in place of this package, with 2,400 writes of one tenant by 16 workers and one write
// of another. The priority queue of controller-runtime can imitate turns by numbers, but not classes, as a number is
// given when a key is added and can only rise; and it holds no key back, so that writes of other users took several
// times as long as with this queue. API Priority and Fairness, with a FlowSchema that distinguishes flows by namespace,
// orders requests only after a worker has sent them: the other tenant's write came last.
package fairqueue

// Attributes describe the work of a key.
type Attributes struct {
	// Tenant is the root of the tree that the work is for. Work for no tenant has "", takes turns as if that were a
	// tenant, and is limited only if it is heavy.
	Tenant string
	// Class is 0, 1 or 2: within a tenant, lower classes come first.
	Class int
	// Lane names what belongs together within a class: lanes take turns.
	Lane string
	// Burst is how many keys of the lane follow one another before the next lane has its turn. 0 stands for 1.
	Burst int
	// Weight is how many bytes the work sends, if it is heavy, else 0.
	Weight int
	// Urgent work with Weight 0 is not limited, whatever other tenants have to do. Urgent work does not count as work
	// that limits other tenants, either.
	Urgent bool
}

// limit is what may keep work from beginning.
type limit int

const (
	unlimited     limit = iota // urgent work, and light work for no tenant
	limitedByWork              // light work of a tenant: occupies one of the tenant's workers
	limitedBySize              // heavy work: occupies its weight
	limits                     // how many limits there are
)

func (a Attributes) limit() limit {
	switch {
	case a.Weight > 0:
		return limitedBySize
	case a.Tenant == "" || a.Urgent:
		return unlimited
	}
	return limitedByWork
}
