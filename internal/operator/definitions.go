package operator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// requiredCRDs are the CRDs without which the operator doesn't start. The CRD of ResourceDistributions is not required, because only a
// component installs it.
var requiredCRDs = []string{definitionOf("lnamespaces"), definitionOf("subnamespaces"), definitionOf("hierarchyconfigurations")}

func definitionOf(resource string) string { return resource + "." + v1alpha1.Domain }

// definitions reads the CRDs of Warren.
type definitions struct{ crds metadata.Getter }

func newDefinitions(cfg *rest.Config) (definitions, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return definitions{}, fmt.Errorf("making the client for CRDs: %w", err)
	}
	kind := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	return definitions{crds: client.Resource(kind)}, nil
}

// check returns an error if a required CRD is missing, unless another one is being deleted. The deletion of that one waits for finalizers
// of the operator. So the operator starts, revokes rights and removes its finalizers, as if no object of the missing kind existed.
func (d definitions) check(ctx context.Context) error {
	log := ctrl.Log.WithName("definitions")
	var missing, ending []string
	for _, name := range requiredCRDs {
		crd, err := d.crds.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case apierrors.IsForbidden(err):
			log.Info("the operator may not read a CRD, and starts as if the CRD were installed", "crd", name, "answer", err.Error())
		case err != nil:
			return fmt.Errorf("reading CRD %s: %w", name, err)
		case crd.DeletionTimestamp != nil:
			ending = append(ending, name)
		}
	}
	switch {
	case len(ending) > 0:
		log.Info("CRDs of Warren are being deleted: the operator handles what is left of their objects; to keep Warren, apply its manifests "+
			"once these CRDs are gone", "beingDeleted", ending, "missing", missing)
	case len(missing) > 0:
		return fmt.Errorf("CRD %s is not installed, and the operator needs it; apply the manifests of Warren; Kubernetes starts the operator "+
			"again until the CRD exists", strings.Join(missing, " and CRD "))
	}
	return nil
}

// newInformer is a cache's NewInformer. While the API server can't be reached, every informer asks again within outageRetryMax. A kind
// whose required CRD is missing lists as empty until the CRD is installed, because the operator starts its work only after all lists. If
// the kind was served once, a 404 is an error, as for any informer. The watch brings the deletions of the kind's objects before the CRD is
// gone, and a 404 alone drops no object.
func (d definitions) newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	inner, served := askOften(lw), &atomic.Bool{}
	definition, emptyList := definitionFor(obj)
	if definition == "" {
		return toolscache.NewSharedIndexInformer(inner, obj, resync, indexers)
	}
	isMissing := func(ctx context.Context) bool {
		_, err := d.crds.Get(ctx, definition, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			if apierrors.IsNotFound(err) && !served.Load() && isMissing(ctx) {
				return emptyList.DeepCopyObject(), nil
			}
			served.CompareAndSwap(false, err == nil)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, options)
			served.CompareAndSwap(false, err == nil)
			return w, err
		},
	}, obj, resync, indexers)
}

// definitionFor returns the required CRD of an object's kind, and an empty list of that kind; "" for an object of any other kind.
func definitionFor(obj runtime.Object) (definition string, emptyList runtime.Object) {
	switch obj.(type) {
	case *v1alpha1.LNamespace:
		return definitionOf("lnamespaces"), &v1alpha1.LNamespaceList{}
	case *v1alpha1.SubNamespace:
		return definitionOf("subnamespaces"), &v1alpha1.SubNamespaceList{}
	case *v1alpha1.HierarchyConfiguration:
		return definitionOf("hierarchyconfigurations"), &v1alpha1.HierarchyConfigurationList{}
	}
	return "", nil
}

// newMapper is a manager's MapperProvider. It maps the kinds of the required CRDs without a request, so that their caches can be made while
// a CRD is missing.
func newMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	served, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the mapper of kinds to resources: %w", err)
	}
	own := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	own.Add(v1alpha1.GroupVersion.WithKind("LNamespace"), meta.RESTScopeRoot)
	own.Add(v1alpha1.GroupVersion.WithKind("SubNamespace"), meta.RESTScopeNamespace)
	own.Add(v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"), meta.RESTScopeNamespace)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{own, served}}, nil
}
