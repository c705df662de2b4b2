package oracle

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/warren-tenancy/warren/test/whole/api"
)

const shareName = "hrq." + domain

// checkShare finds shares that the operator raises although the sum of shares below a limit is then above the limit. The limit counts as
// the largest value that it had since the operator last knew, and only namespaces count that were in the tree since then. A share may be
// what the namespace uses.
func (w *Watcher) checkShare(e api.Event) {
	if !e.New.Kind.Has("", "resourcequotas") || e.New.GetName() != shareName || e.Type == watch.Deleted {
		return
	}
	namespace, before := e.New.GetNamespace(), map[string]any{}
	if e.Old != nil {
		before = hardOf(e.Old.Object, "spec", "hard")
	}
	for key, text := range hardOf(e.New.Object, "spec", "hard") {
		now := amountOf(text)
		if now <= amountOf(before[key]) || now <= w.mostUsed(namespace, key, e) {
			continue
		}
		for _, limit := range w.limitsAbove(namespace, key) {
			sum := w.sumBelow(limit.namespace, key)
			if sum > limit.most {
				w.report(Shares, "the operator raised the share of %s in %s from %v to %v; below %s the sum is now %d, the limit %d", key, namespace,
					before[key], text, limit.of, sum, limit.most)
			}
		}
	}
}

func amountOf(value any) int64 {
	text, _ := value.(string)
	if text == "" {
		return 0
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return quantity.Value()
}

// mostUsed is what a namespace uses of a resource, as counted or as it is.
func (w *Watcher) mostUsed(namespace, key string, e api.Event) int64 {
	most := amountOf(hardOf(e.New.Object, "status", "used")[key])
	if e.Old != nil {
		most = max(most, amountOf(hardOf(e.Old.Object, "status", "used")[key]))
	}
	for _, k := range w.server.Kinds() {
		if k.Group == "" && k.Resource == key {
			most = max(most, int64(len(k.In(namespace))))
		}
	}
	return most
}

// limit is one that holds for a namespace and those below it.
type limit struct {
	of, namespace string
	most          int64
}

// limitsAbove returns the limits that hold for a namespace.
func (w *Watcher) limitsAbove(namespace, key string) []limit {
	var limits []limit
	add := func(r *api.Record, below string, path ...string) {
		if most, bounded := w.largest(r, key, path...); bounded {
			limits = append(limits, limit{fmt.Sprintf("%s %s/%s", r.GetKind(), r.GetNamespace(), r.GetName()), below, most})
		}
	}
	for at := namespace; at != ""; at = w.parentOf(at) {
		if tenant := w.server.Kind(domain, "lnamespaces").Find("", at); tenant != nil && w.parentOf(at) == "" {
			add(tenant, at, "spec", "limits", "hard")
		}
		for _, hrq := range w.server.Kind(domain, "hierarchicalresourcequotas").In(at) {
			add(hrq, at, "spec", "hard")
		}
	}
	return limits
}

// largest returns the largest value of a limit since the operator last knew; false if there was none at a moment.
func (w *Watcher) largest(r *api.Record, key string, path ...string) (int64, bool) {
	value, has := hardOf(r.Object, path...)[key]
	if !has {
		return 0, false
	}
	most := amountOf(value)
	for _, e := range w.unknown(r.Kind) {
		if e.New.GetNamespace() != r.GetNamespace() || e.New.GetName() != r.GetName() {
			continue
		}
		if e.Old == nil || e.Type == watch.Deleted {
			return 0, false // the operator may not know this limit
		}
		was, had := hardOf(e.Old.Object, path...)[key]
		if !had {
			return 0, false
		}
		most = max(most, amountOf(was))
	}
	return most, true
}

// unknown returns the events of a kind that the operator did not know.
func (w *Watcher) unknown(k *api.Kind) []api.Event {
	since := w.knowing()
	if since == 0 {
		since = math.MaxInt64
	}
	log := k.Log()
	for i, event := range slices.Backward(log) {
		if revision, err := strconv.ParseInt(event.New.GetResourceVersion(), 10, 64); err != nil || revision < since {
			return log[i+1:]
		}
	}
	return log
}

func (w *Watcher) parentOf(namespace string) string {
	ns := w.server.Kind("", "namespaces").Find("", namespace)
	if ns == nil {
		return ""
	}
	return ns.GetLabels()[domain+"/parent"]
}

// sumBelow adds the shares of the namespaces that have been below one since the operator last knew.
func (w *Watcher) sumBelow(top, key string) int64 {
	namespaces := w.server.Kind("", "namespaces")
	moved := map[string]bool{}
	for _, e := range w.unknown(namespaces) {
		if e.Old == nil || e.Old.GetLabels()[domain+"/parent"] != e.New.GetLabels()[domain+"/parent"] {
			moved[e.New.GetName()] = true
		}
	}
	sum := int64(0)
	for _, quota := range w.server.Kind("", "resourcequotas").All() {
		if quota.GetName() != shareName {
			continue
		}
		at, steps := quota.GetNamespace(), 0
		for ; at != "" && at != top && !moved[at] && steps < 50; steps++ {
			at = w.parentOf(at)
		}
		if at == top && !moved[at] {
			text, _, _ := unstructured.NestedString(quota.Object, "spec", "hard", key)
			sum += amountOf(text)
		}
	}
	return sum
}
