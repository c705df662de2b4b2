// Package fairqueue is a work queue that is fair to tenants, and within each tenant to the sources of its work.
package fairqueue

// Attributes say where a key waits, and what its work occupies. Tenants take turns. Within a tenant the lowest class comes first, and within a class
// lanes take turns. So a tenant, or a lane, with very many keys delays nobody else.
type Attributes struct {
	// Tenant is the root of the tree that the work is for; "" if it is for no tenant.
	Tenant string
	// Class is 0, 1 or 2.
	Class int
	// Lane names what the keys of one class that belong together have in common, such as the source of copies.
	Lane string
	// Burst is how many keys of the lane follow one another before the next lane has its turn; 0 stands for 1.
	Burst int
	// Weight is how many bytes the work sends, if these are many; else 0.
	Weight int
	// Urgent work is never held back, whatever other tenants have to do: it takes rights away, or asks nothing of the API server.
	Urgent bool
}
