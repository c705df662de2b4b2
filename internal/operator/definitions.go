package operator

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// ownKind is a kind of Warren that the whole operator works with. ResourceDistribution is no ownKind, because only a component installs its
// CRD.
type ownKind struct {
	resource  string
	scope     meta.RESTScope
	emptyList func() runtime.Object
}

var ownKinds = map[string]ownKind{
	"LNamespace":   {"lnamespaces", meta.RESTScopeRoot, func() runtime.Object { return &v1alpha1.LNamespaceList{} }},
	"SubNamespace": {"subnamespaces", meta.RESTScopeNamespace, func() runtime.Object { return &v1alpha1.SubNamespaceList{} }},
	"HierarchyConfiguration": {"hierarchyconfigurations", meta.RESTScopeNamespace,
		func() runtime.Object { return &v1alpha1.HierarchyConfigurationList{} }},
}

// definition returns the name of the kind's CRD.
func (k ownKind) definition() string { return k.resource + "." + v1alpha1.Domain }

var definitionMissing = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warren_crd_missing", Help: "1 for a CRD of Warren that was missing when the operator started, and still is.",
}, []string{"crd"})

func init() { metrics.Registry.MustRegister(definitionMissing) }

// definitions let the operator start while CRDs of Warren are missing: until a CRD is installed, the operator runs as if no object of its
// kind existed.
type definitions struct {
	// read returns nil if there is a CRD of that name, and a NotFound error if there is none.
	read func(ctx context.Context, name string) error

	mu      sync.Mutex // guards missing; nothing is called while it is held
	missing map[string]bool
}

func newDefinitions(cfg *rest.Config) (*definitions, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	return &definitions{missing: map[string]bool{}, read: func(ctx context.Context, name string) error {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		return err
	}}, nil
}

// newInformer is a cache's NewInformer. While the API server can't be reached, every informer asks again within outageRetryMax. If the CRD
// of one of our kinds has been missing since the start, the kind's informer has an empty list. It asks again with its usual back-off of up
// to a minute, and works as any other informer once the CRD exists. If the kind was served once and its CRD is deleted later, a 404 is an
// error, as for any informer. The watch brings the deletions of the kind's objects before the CRD is gone, and a 404 alone drops no object.
func (d *definitions) newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	inner, served := askOften(lw), &atomic.Bool{}
	kind, ok := ownKinds[kindOf(obj)]
	if !ok {
		return toolscache.NewSharedIndexInformer(inner, obj, resync, indexers)
	}
	note := func(err error) {
		if err == nil && !served.Swap(true) {
			d.setMissing(kind, false)
		}
	}
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			if note(err); apierrors.IsNotFound(err) && !served.Load() && apierrors.IsNotFound(d.read(ctx, kind.definition())) {
				d.setMissing(kind, true)
				return kind.emptyList(), nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, options)
			note(err)
			return w, err
		},
	}, obj, resync, indexers)
}

// kindOf returns the name of the kind for an object of ours; "" for any other object.
func kindOf(obj runtime.Object) string {
	switch obj.(type) {
	case *v1alpha1.LNamespace:
		return "LNamespace"
	case *v1alpha1.SubNamespace:
		return "SubNamespace"
	case *v1alpha1.HierarchyConfiguration:
		return "HierarchyConfiguration"
	}
	return ""
}

// setMissing notes whether a CRD is missing, and shows a change in the log and in the metric.
func (d *definitions) setMissing(kind ownKind, missing bool) {
	name := kind.definition()
	d.mu.Lock()
	was := d.missing[name]
	d.missing[name] = missing
	d.mu.Unlock()
	gauge := definitionMissing.WithLabelValues(name)
	switch log := ctrl.Log.WithName("definitions"); {
	case missing && !was:
		gauge.Set(1)
		log.Info(describeMissing(name))
	case !missing:
		if gauge.Set(0); was {
			log.Info("a CRD that was missing at the start is installed now: the operator handles its kind", "crd", name)
		}
	}
}

// notes returns a sentence for each missing CRD, for /readyz?verbose.
func (d *definitions) notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for name, missing := range d.missing {
		if missing {
			all = append(all, describeMissing(name))
		}
	}
	slices.Sort(all)
	return all
}

func describeMissing(name string) string {
	return "CRD " + name + " is not installed: the operator runs as if no object of that kind existed, and handles the kind within about a " +
		"minute after the CRD is installed; apply the manifests of Warren again"
}
