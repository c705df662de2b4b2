package webhooks_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

func init() {
	log.SetLogger(logr.Discard()) // the tests don't check logs
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

// cluster has what the handlers read: the forest, the objects that the API server returns, and alice's rights.
type cluster struct {
	forest  *forest.Snapshot
	unready bool
	live    []client.Object
	config  *config.OperatorConfiguration
	// may lists the requests that alice may make, as "verb resource namespace/name"; "*" means all.
	may []string
	// reviews counts the questions to the authorizer. All copies of a cluster share it.
	reviews *atomic.Int32
	// reads counts the objects that were read from the API server.
	reads *atomic.Int32
	// deaf is the error that the authorizer returns; nil means that it answers.
	deaf error
	// mapper has the kinds that the API server serves.
	mapper meta.RESTMapper
}

// grown returns a cluster whose forest holds the same objects as its API server.
func grown(objects ...client.Object) *cluster {
	c := &cluster{config: configfile.Default(), may: []string{"get namespaces"}, reviews: &atomic.Int32{}, reads: &atomic.Int32{}}
	c.config.SubNamespaces.Labels, c.config.SubNamespaces.Annotations = config.Globs{"team", "app"}, config.Globs{"memo"}
	c.config.Inheritance.Labels = config.Globs{"team"}
	c.config.SubNamespaces.NamingPolicies = []config.NamingPolicy{{Root: "^app-(?P<team>.*)", Match: "^app-${team}-.*"}}
	c.config.ProtectedNamespaces = config.Globs{"locked-*"}
	return c.with(objects...)
}

func (c *cluster) rules() forest.Rules {
	return forest.Rules{
		InheritLabel: c.config.Inheritance.Labels.Match, InheritAnnotation: c.config.Inheritance.Annotations.Match,
		SubLabel: c.config.SubNamespaces.Labels.Match, SubAnnotation: c.config.SubNamespaces.Annotations.Match,
		ProtectedName:  func(name string) bool { return c.config.Protected(name, "warren-system") },
		AllowCascading: c.config.SubNamespaces.AllowCascadingDeletion,
		CheckName: func(root, name string) error {
			return configfile.CheckName(c.config.SubNamespaces.NamingPolicies, root, name)
		},
		Limits:  c.config.SubNamespaces.Limits,
		Billing: forest.BillingKeys{CostCenter: c.config.Billing.NamespaceLabels.CostCenter, Owner: c.config.Billing.NamespaceLabels.Owner},
	}
}

// with adds objects to the forest and to the API server.
func (c *cluster) with(objects ...client.Object) *cluster {
	if c.forest == nil {
		c.forest = forest.New(c.rules())
	}
	for _, object := range objects {
		identify(object)
		c.live = append(c.live, object)
		switch o := object.(type) {
		case *corev1.Namespace:
			c.forest = c.forest.WithNamespace(forest.NamespaceOf(o))
		case *v1alpha1.LNamespace:
			c.forest = c.forest.WithTenant(forest.TenantOf(o))
		case *v1alpha1.HierarchyConfiguration:
			c.forest = c.forest.WithHierarchy(forest.HierarchyOf(o.Namespace, string(o.UID), o.Spec))
		case *v1alpha1.SubNamespace:
			c.forest = c.forest.WithSub(&forest.Sub{Parent: o.Namespace, Name: o.Name, UID: string(o.UID), Deleting: !o.DeletionTimestamp.IsZero()})
		}
	}
	return c
}

// unaware adds SubNamespaces only to the forest: the API server doesn't have them any more.
func (c *cluster) unaware(subs ...*v1alpha1.SubNamespace) *cluster {
	for _, sub := range subs {
		c.forest = c.forest.WithSub(forest.SubOf(sub))
	}
	return c
}

// later adds objects only to the API server: the forest doesn't have them yet.
func (c *cluster) later(objects ...client.Object) *cluster {
	c.live = append(c.live, objects...)
	return c
}

// blind returns the cluster, in which alice may then read no namespace.
func (c *cluster) blind() *cluster {
	c.may = nil
	return c
}

// allowing gives alice more rights.
func (c *cluster) allowing(rights ...string) *cluster {
	c.may = append(c.may, rights...)
	return c
}

func (c *cluster) configured(change func(*config.OperatorConfiguration)) *cluster {
	change(c.config)
	c.forest = c.forest.WithRules(c.rules())
	return c
}

func (c *cluster) Snapshot() *forest.Snapshot { return c.forest }
func (c *cluster) Synced() bool               { return !c.unready }

func (c *cluster) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	c.reviews.Add(1)
	a := spec.ResourceAttributes
	right := strings.TrimSpace(a.Verb + " " + a.Resource + " " + a.Namespace)
	if a.Name != "" {
		right += "/" + a.Name
	}
	return slices.Contains(c.may, right) || slices.Contains(c.may, "*"), c.deaf
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.reads.Add(1)
	for _, o := range slices.Backward(c.live) {
		if client.ObjectKeyFromObject(o) != key || kindOf(o) != kindOf(into) {
			continue
		}
		if metadata, ok := into.(*metav1.PartialObjectMetadata); ok {
			metadata.ObjectMeta = metaOf(o)
			return nil
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o).Elem())
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(into)}, key.Name)
}

func (c *cluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if requests, ok := into.(*v1alpha1.SudoRequestList); ok {
		for _, o := range c.live {
			if r, is := o.(*v1alpha1.SudoRequest); is {
				requests.Items = append(requests.Items, *r)
			}
		}
		return nil
	}
	list := into.(*metav1.PartialObjectMetadataList)
	for _, o := range c.live {
		if kindOf(o)+"List" == list.Kind {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metaOf(o)})
		}
	}
	return nil
}

func kindOf(o client.Object) string {
	if metadata, ok := o.(*metav1.PartialObjectMetadata); ok {
		return metadata.Kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

func metaOf(o client.Object) metav1.ObjectMeta {
	return reflect.ValueOf(o).Elem().FieldByName("ObjectMeta").Interface().(metav1.ObjectMeta)
}

// alice is the user who sends a request, unless a case names another.
var alice = authenticationv1.UserInfo{Username: "alice", Groups: []string{"g1", "g2"}}

func (c *cluster) as(t *testing.T, user authenticationv1.UserInfo, path string, old, now client.Object) admission.Response {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "u", UserInfo: user, Operation: admissionv1.Update}}
	switch {
	case old == nil:
		req.Operation = admissionv1.Create
	case now == nil:
		req.Operation = admissionv1.Delete
	}
	about := now
	if old != nil {
		about = old
		identify(old)
		c = c.knowing(old)
		if now != nil {
			now.SetUID(old.GetUID())
		}
	}
	gvk, err := kindFor(about)
	if err != nil {
		t.Fatal(err)
	}
	req.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	req.Resource = metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"}
	req.Namespace = about.GetNamespace()
	req.OldObject, req.Object = raw(t, old), raw(t, now)
	return webhooks.Handlers(scheme(), webhooks.Options{
		View: c, Config: c.config, Namespace: "warren-system", Live: c, Authorizer: c, Mapper: c.mapper, DryRun: accepting{},
	})[path].Handle(t.Context(), req)
}

// identify gives an object a UID if it has none, made from its name. Every LNamespace gets the UID that the function tenant uses.
func identify(object client.Object) {
	if _, is := object.(*v1alpha1.LNamespace); is {
		object.SetUID("uid-1")
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid of " + object.GetNamespace() + "/" + object.GetName()))
	}
}

// knowing returns the cluster with the object in its forest: the handlers don't decide on a change of an object that the forest lacks.
func (c *cluster) knowing(object client.Object) *cluster {
	known := *c
	switch o := object.(type) {
	case *corev1.Namespace:
		if known.forest.Namespace(o.Name) == nil {
			known.forest = known.forest.WithNamespace(forest.NamespaceOf(o))
		}
	case *v1alpha1.LNamespace:
		if known.forest.Tenant(o.Name) == nil {
			known.forest = known.forest.WithTenant(forest.TenantOf(o))
		}
	case *v1alpha1.SubNamespace:
		if known.forest.Sub(o.Namespace, o.Name) == nil {
			known.forest = known.forest.WithSub(&forest.Sub{Parent: o.Namespace, Name: o.Name, UID: string(o.UID)})
		}
	case *v1alpha1.HierarchyConfiguration:
		if known.forest.Hierarchy(o.Namespace) == nil {
			known.forest = known.forest.WithHierarchy(forest.HierarchyOf(o.Namespace, string(o.UID), v1alpha1.HierarchyConfigurationSpec{}))
		}
	}
	return &known
}

func raw(t *testing.T, o client.Object) runtime.RawExtension {
	t.Helper()
	if o == nil {
		return runtime.RawExtension{}
	}
	gvk, err := kindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	o = o.DeepCopyObject().(client.Object)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

func kindFor(o client.Object) (schema.GroupVersionKind, error) {
	kinds, _, err := scheme().ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// answered is an expected answer: the code of a refusal, or 0 if the request is allowed, and texts that its message and its warnings
// contain.
type answered struct {
	code     int32
	says     []string
	warnings []string
}

func allowed(warnings ...string) answered         { return answered{warnings: warnings} }
func refused(code int32, says ...string) answered { return answered{code: code, says: says} }
func (a answered) warning(warnings ...string) answered {
	a.warnings = warnings
	return a
}

func (a answered) check(t *testing.T, reason string, r admission.Response) {
	t.Helper()
	var code int32
	var message string
	if !r.Allowed {
		code, message = r.Result.Code, r.Result.Message
	}
	if code != a.code {
		t.Errorf("%s\ncode %d, want %d: %s", reason, code, a.code, message)
	}
	for _, says := range a.says {
		if !strings.Contains(message, says) {
			t.Errorf("%s\n%q doesn't say %q", reason, message, says)
		}
	}
	if len(r.Warnings) != len(a.warnings) {
		t.Errorf("%s\nwarnings %q, want %q", reason, r.Warnings, a.warnings)
		return
	}
	for i, warning := range a.warnings {
		if !strings.Contains(r.Warnings[i], warning) {
			t.Errorf("%s\nwarning %q doesn't say %q", reason, r.Warnings[i], warning)
		}
	}
}

// The functions below return objects for which package build has no builder.

func bound(name, parent string) *corev1.Namespace {
	return build.Child(name, parent, v1alpha1.LabelBound, v1alpha1.True)
}

func noted(n *corev1.Namespace, key, value string) *corev1.Namespace {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, key, value)
	return n
}

// tenant returns an LNamespace and its root.
func tenant(b *build.LNamespace) []client.Object {
	lns := b.Object()
	lns.UID = "uid-1"
	return []client.Object{lns, noted(build.Root(lns.Name), v1alpha1.AnnotationLNamespaceUID, string(lns.UID))}
}

func ending[T client.Object](o T) T {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return o
}
