package sudo

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/internal/sudo"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// known is what watches have shown. It finds the request of a grant, and the grants of which there is anything: what is decided is read
// live.
type known struct {
	mu       sync.Mutex // guards the fields below
	requests *mirror.Table[*v1alpha1.SudoRequest, request]
	timers   *mirror.Table[*metav1.PartialObjectMetadata, grant]
	bindings *mirror.Table[*metav1.PartialObjectMetadata, grant]
}

// request is what is kept of a SudoRequest.
type request struct {
	uid        types.UID
	isFinished bool
	reason     string // of condition Active; "" before the first report
}

// grant is what is kept of a timer, and of a RoleBinding, whose name is the UID of the request: where the request is.
type grant struct{ tenant string }

func newKnown() *known {
	keep := func(o *metav1.PartialObjectMetadata) grant { return grant{o.Labels[v1alpha1.LabelTenant]} }
	return &known{
		requests: mirror.New(keepRequest),
		timers:   mirror.New(keep), bindings: mirror.New(keep),
	}
}

func keepRequest(r *v1alpha1.SudoRequest) request {
	kept := request{uid: r.UID, isFinished: sudo.IsFinished(r)}
	if active := findActive(r); active != nil {
		kept.reason = active.Reason
	}
	return kept
}

// watchedReasons are those of requests that are not finished, and that alerts and dashboards look at: their counts are exposed also at 0.
var watchedReasons = []v1alpha1.Reason{v1alpha1.ReasonPending, v1alpha1.ReasonGranted, v1alpha1.ReasonTimerMissing,
	v1alpha1.ReasonPolicyMissing, v1alpha1.ReasonNotEnded}

// countReasons returns how many requests have which reason.
func (k *known) countReasons() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	counts := map[string]int{}
	for _, reason := range watchedReasons {
		counts[string(reason)] = 0
	}
	for _, is := range k.requests.All() {
		counts[is.reason]++
	}
	return counts
}

// isComplete reports whether it is known which requests, timers and RoleBindings exist.
func (k *known) isComplete() bool {
	return k.isKnown(func(is mirror.Knowledge, _ string) bool { return is == mirror.Complete })
}

// isSettled reports whether the watches have shown all, or may show nothing: whoever waits for more would wait for a cluster admin.
func (k *known) isSettled() bool {
	return k.isKnown(func(is mirror.Knowledge, why string) bool {
		return is == mirror.Complete || is == mirror.Blind && why == string(watchset.Forbidden)
	})
}

// isKnown reports whether what is known of requests, timers and RoleBindings is enough.
func (k *known) isKnown(isEnough func(mirror.Knowledge, string) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return isEnough(k.requests.Knowledge(mirror.Everywhere)) && isEnough(k.timers.Knowledge(v1alpha1.SudoNamespace)) &&
		isEnough(k.bindings.Knowledge(v1alpha1.SudoNamespace))
}

// listRequests returns the places of the requests of a tenant that are not finished.
func (k *known) listRequests(tenant string) (places []types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, is := range k.requests.In(tenant) {
		if !is.isFinished {
			places = append(places, types.NamespacedName{Namespace: tenant, Name: name})
		}
	}
	return places
}

// findPlace returns the place of the request that a timer or RoleBinding is of. Where it isn't known, that is the place of the grant.
func (k *known) findPlace(uid types.UID, tenant string) types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, is := range k.requests.In(tenant) {
		if is.uid == uid {
			return types.NamespacedName{Namespace: tenant, Name: name}
		}
	}
	return types.NamespacedName{Namespace: v1alpha1.SudoNamespace, Name: string(uid)}
}

// listGrants returns the places of all requests of which there is a timer or a RoleBinding, those with a RoleBinding first.
func (k *known) listGrants() (places []types.NamespacedName) {
	seen := map[string]string{}
	k.mu.Lock()
	var order []string
	for _, table := range []*mirror.Table[*metav1.PartialObjectMetadata, grant]{k.bindings, k.timers} {
		for name, is := range table.In(v1alpha1.SudoNamespace) {
			if _, twice := seen[name]; !twice {
				order = append(order, name)
			}
			seen[name] = is.tenant
		}
	}
	k.mu.Unlock()
	for _, name := range order {
		places = append(places, k.findPlace(types.UID(name), seen[name]))
	}
	return places
}

// listAll returns the places of all requests and grants, the grants first.
func (k *known) listAll() []types.NamespacedName {
	places := k.listGrants()
	k.mu.Lock()
	defer k.mu.Unlock()
	for place := range k.requests.All() {
		places = append(places, place)
	}
	return places
}

// hasGrant reports whether there may be a timer or a RoleBinding of a request.
func (k *known) hasGrant(uid types.UID) bool {
	if !k.isComplete() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	at := mirror.Place{Namespace: v1alpha1.SudoNamespace, Name: string(uid)}
	return k.timers.At(at) != nil || k.bindings.At(at) != nil
}

// waitPause is the time between two looks whether all is known.
const waitPause = 100 * time.Millisecond
