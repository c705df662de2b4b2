package watchset

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure a Set. The zero value of a field means its default.
type Options struct {
	// Backoff is the delay before each review of whether an informer that is Forbidden or NotServed may begin again.
	// The zero value means 5s, doubled each time up to 5m, each ±20 %. The delay starts from Initial again once the
	// informer was Synced.
	Backoff Backoff
	// VerifyInterval is the time, ±20 %, between two reviews of the rights of a Synced informer; nil means 5m, a
	// pointer to 0 never.
	VerifyInterval *time.Duration
	// RBACDebounce is the time from the first event of RBAC to the review that it causes; 0 means 250ms.
	RBACDebounce time.Duration
	// WatchRBAC states when the Set watches the kinds of RBAC, WatchCRDs whether it watches CRDs while an informer is
	// NotServed. With WatchRBAC WhileForbidden, the Set notices a gained right as soon as with WhereAllowed. It notices
	// a lost right only when the informer's stream is opened again, or when its rights are reviewed (VerifyInterval).
	// This saves four watches, and suits a Set of few, cluster-wide informers.
	WatchRBAC, WatchCRDs WatchMode
	// IdleGrace is how long an informer without leases lives on; nil means 30s, a pointer to 0 not at all.
	IdleGrace *time.Duration
	// DegradedAfter is how long an informer may be without a working watch before it is Degraded; 0 means 30s.
	DegradedAfter time.Duration
	// StartConcurrency is how many initial lists are under way at a time; 0 means 16.
	StartConcurrency int
	// MaxInformers is how many informers a Set runs, MaxNamespaces how many namespaces one lease follows; 0 means 2000
	// informers and 500 namespaces. Informers and namespaces beyond that stay Pending with ErrLimit, and start in
	// alphabetical order when others end.
	MaxInformers, MaxNamespaces int
	// Transform has, by resource, the function that changes an object before it is stored, in place of
	// DefaultTransform. The function may return a smaller object, of a type of the caller's own, but must keep
	// namespace, name, UID and resourceVersion. It may change its argument, and must not return nil.
	Transform map[schema.GroupVersionResource]func(client.Object) client.Object
	// Mapper finds the resource of a kind for Session.Reader; nil means that the Set asks discovery. For a Request of a
	// Kind the Set always asks discovery, because a Mapper may still have kinds that are no longer served.
	Mapper meta.RESTMapper
	// Scheme has the Go types for objects in form Full. Objects of other kinds are unstructured.
	Scheme *runtime.Scheme
	// HTTPClient makes the requests; nil means one made from the rest.Config.
	HTTPClient *http.Client
	// Registerer gets the metrics; nil means no metrics.
	Registerer prometheus.Registerer
	// Logger gets one line when an informer changes to Synced, Forbidden, NotServed or Degraded; the zero value drops
	// these lines.
	Logger logr.Logger
}

// Backoff is a delay that doubles from Initial to Max.
type Backoff struct{ Initial, Max time.Duration }

// WatchMode states when the Set watches the kinds of RBAC, or CRDs, in order to notice changes of rights or resources.
type WatchMode string

// Modes of watching. WhereAllowed, the default, watches wherever the identity may. WhileForbidden does so only while an
// informer is Forbidden. Off never watches.
const (
	WhereAllowed   WatchMode = "Auto"
	WhileForbidden WatchMode = "WhileForbidden"
	Off            WatchMode = "Off"
)

// withDefaults returns o with its defaults filled in.
func (o Options) withDefaults() (Options, error) {
	for name, value := range map[string]time.Duration{
		"Backoff.Initial": o.Backoff.Initial, "Backoff.Max": o.Backoff.Max, "VerifyInterval": ptr.Deref(o.VerifyInterval, 0),
		"RBACDebounce": o.RBACDebounce, "IdleGrace": ptr.Deref(o.IdleGrace, 0), "DegradedAfter": o.DegradedAfter,
		"StartConcurrency": time.Duration(o.StartConcurrency), "MaxInformers": time.Duration(o.MaxInformers),
		"MaxNamespaces": time.Duration(o.MaxNamespaces),
	} {
		if value < 0 {
			return o, fmt.Errorf("option %s is negative", name)
		}
	}
	if !slices.Contains([]WatchMode{"", WhereAllowed, WhileForbidden, Off}, o.WatchRBAC) {
		return o, fmt.Errorf("option WatchRBAC is %q: must be %s, %s or %s", o.WatchRBAC, WhereAllowed, WhileForbidden, Off)
	}
	if !slices.Contains([]WatchMode{"", WhereAllowed, Off}, o.WatchCRDs) {
		return o, fmt.Errorf("option WatchCRDs is %q: must be %s or %s", o.WatchCRDs, WhereAllowed, Off)
	}
	fillDefault(&o.Backoff.Initial, 5*time.Second)
	fillDefault(&o.Backoff.Max, 5*time.Minute)
	o.Backoff.Max = max(o.Backoff.Max, o.Backoff.Initial)
	fillDefault(&o.VerifyInterval, ptr.To(5*time.Minute))
	fillDefault(&o.RBACDebounce, 250*time.Millisecond)
	fillDefault(&o.IdleGrace, ptr.To(30*time.Second))
	fillDefault(&o.DegradedAfter, 30*time.Second)
	fillDefault(&o.StartConcurrency, 16)
	fillDefault(&o.MaxInformers, 2000)
	fillDefault(&o.MaxNamespaces, 500)
	return o, nil
}

// nextRegularCheck returns when the rights of a Synced part are reviewed next without a hint; the zero time means
// never.
func (o *Options) nextRegularCheck() time.Time {
	if *o.VerifyInterval == 0 {
		return time.Time{}
	}
	return time.Now().Add(withJitter(*o.VerifyInterval))
}

func fillDefault[T comparable](option *T, usual T) {
	var zero T
	if *option == zero {
		*option = usual
	}
}
