// Package simulation runs histories of a small cluster: the States of internal/copyengine and internal/distribute, the View, and the code
// that carries out their requests are the real ones; the API server, time, users and everything that goes wrong are a model.
//
// A seed makes a script (events.go): the settings of a history and a list of events. The events decide everything that chance decides
// elsewhere: which watch shows something next, which call of the API server comes next and whether it fails, when a process dies. The
// same script is the same history each time. After each write, and each decision of a State, the invariants are checked (invariants.go).
// When the script is over, all faults end, the operator works until nothing is left to do, and the cluster is compared with what the
// sources and the forest ask for (oracle.go). The script of a history that fails is made as short as it can be, and printed as a table
// (shrink.go).
//
// The model has:
//
//   - an API server: UIDs, resourceVersions, conflicts, preconditions of DELETE, immutable roleRefs, finalizers, terminating namespaces,
//     garbage collection, policies that refuse, 429, 503, and requests without an answer, some of which are carried out;
//   - watches that each have a random delay, so that the events of one kind overtake those of another; 410 and a new list; lists that are
//     old at the start; kinds that are degraded, forbidden or not served;
//   - etcd, which may be restored from an older state; then every process of the operator ends;
//   - a leader and a standby; a leader that loses the Lease and still completes its requests; processes that are killed between any two
//     requests, and whose last request arrives later;
//   - users: sources in all modes, selectors, moves, namespaces that are created and deleted, edits of copies, removed labels,
//     finalizers, unrelated objects, forged marks, ResourceDistributions with all conflict policies;
//   - other controllers, which generate objects that the operator labels as their generators ask;
//   - limits on the number of copies in a tree, or on their size.
//
// It has no kinds that are watched in each namespace by itself (tests of internal/copyengine and `make test-scopes` have them), and no
// copies of access objects. Names and hashes don't decide what is a copy: the model records what the operator has written.
package simulation
