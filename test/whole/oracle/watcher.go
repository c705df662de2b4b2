package oracle

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// Watcher judges each write of the operator when it is carried out.
type Watcher struct {
	// Found is what should not have been written.
	Found []Finding

	server   *api.Server
	operator string
	// knowing returns the first revision that the operator did not know when it sent the request that is carried out.
	knowing func() int64
	makers  map[types.UID]string
	// everListed are the users who were ever on a list, by LNamespace.
	everListed map[string][]string
}

// NewWatcher returns a Watcher of the writes of a user, the operator.
func NewWatcher(server *api.Server, operator string, knowing func() int64) *Watcher {
	w := &Watcher{server: server, operator: operator, knowing: knowing, makers: map[types.UID]string{}, everListed: map[string][]string{}}
	server.Observe(w.take)
	return w
}

func (w *Watcher) take(e api.Event) {
	if e.Old == nil {
		w.makers[e.New.GetUID()] = e.By
	}
	if e.New.Kind.Has(domain, "lnamespaces") {
		w.everListed[e.New.GetName()] = append(w.everListed[e.New.GetName()], listed(e.New)...)
	}
	if e.By != w.operator {
		return
	}
	w.checkOthers(e)
	w.checkPeople(e)
	w.checkShare(e)
}

func (w *Watcher) report(oracle, format string, args ...any) {
	w.Found = append(w.Found, findingOf(oracle, format, args...))
}

// othersKinds are those of which the operator changes only objects that it has made.
var othersKinds = []string{"secrets", "configmaps", "pods", "services", "resourcequotas", "networkpolicies", "roles", "rolebindings",
	"clusterroles", "clusterrolebindings", "limitranges"}

// checkOthers finds writes to objects that others made.
func (w *Watcher) checkOthers(e api.Event) {
	maker := w.makers[e.New.GetUID()]
	if e.Old == nil || maker == w.operator || strings.HasPrefix(e.New.GetNamespace(), "warren-") {
		return
	}
	isNamespace := e.New.Kind.Resource == "namespaces" && (e.Type == watch.Deleted || e.Old.GetDeletionTimestamp() == nil &&
		e.New.GetDeletionTimestamp() != nil)
	if isNamespace || slices.Contains(othersKinds, e.New.Kind.Resource) {
		w.report(Others, "the operator has sent %s for %s %s/%s, which %s made", e.Type, e.New.GetKind(), e.New.GetNamespace(), e.New.GetName(),
			maker)
	}
}

// checkPeople finds bindings that name users who were never on a list of the tenant.
func (w *Watcher) checkPeople(e api.Event) {
	tenant := e.New.GetLabels()[domain+"/tenant"]
	access := e.New.GetLabels()[domain+"/access"]
	if e.Type == watch.Deleted || !strings.HasSuffix(e.New.Kind.Resource, "rolebindings") || access == "" || access == "request" ||
		tenant == "" {
		return
	}
	var before []string
	if e.Old != nil {
		before = usersIn(e.Old.Object, "subjects")
	}
	for _, user := range usersIn(e.New.Object, "subjects") {
		if !slices.Contains(before, user) && !slices.Contains(w.everListed[tenant], user) {
			w.report(People, "the operator has put user %s into %s %s/%s, but LNamespace %s never listed them", user, e.New.GetKind(),
				e.New.GetNamespace(), e.New.GetName(), tenant)
		}
	}
}

func hardOf(object map[string]any, path ...string) map[string]any {
	hard, _, _ := unstructured.NestedMap(object, path...)
	return hard
}
