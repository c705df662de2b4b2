// Package informers_test shows on a real control plane what pkg/watchset promises. Each case runs as a user of its own, who has
// no right but what the case grants, and in namespaces of its own.
//
// A number such as INF-I01 in the name of a test says that all of that row of docs/behaviour was seen. Rows that take ten minutes are
// tests of pkg/watchset, with a clock that isn't real.
package informers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

func TestInformers(t *testing.T) { suite.Run(t, "Informers") }

var (
	access controlplane.Access
	admin  client.WithWatch
)

// cases is the highest number of a case, for each of which there is a user.
const cases = 92

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	users := map[string][]string{}
	for n := range cases + 1 {
		users[user(n)] = []string{user(n) + "-group"}
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{Users: users})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	text, err := json.Marshal(cp.Access)
	Expect(err).NotTo(HaveOccurred())
	return text
}, func(text []byte) {
	Expect(json.Unmarshal(text, &access)).To(Succeed())
	var err error
	admin, err = client.NewWithWatch(access.Config(controlplane.Admin), client.Options{Scheme: devcluster.Scheme()})
	Expect(err).NotTo(HaveOccurred())
})

func user(number int) string { return fmt.Sprintf("op%02d", number) }

var (
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// see are the verbs that an informer needs.
var see = []string{"list", "watch"}

// world is what a case has for itself: a user, a set that runs as this user, and all requests that it makes.
type world struct {
	*watchset.Set
	*wire
	name   string
	config *rest.Config
	stop   context.CancelFunc
	ended  chan error
}

// patient are options with long pauses: an informer learns only from its first attempt and from what is watched.
func patient() watchset.Options {
	return watchset.Options{Backoff: watchset.Backoff{Initial: time.Hour, Max: time.Hour}, VerifyInterval: ptr.To(time.Hour)}
}

// blind are options without the watches of RBAC and CRDs that serve all informers, and with a short back-off.
func blind() watchset.Options {
	return watchset.Options{
		Backoff:   watchset.Backoff{Initial: 200 * time.Millisecond, Max: time.Second},
		WatchRBAC: watchset.Off, WatchCRDs: watchset.Off, VerifyInterval: ptr.To(time.Hour),
	}
}

// begin starts a set for a case.
func begin(number int, o watchset.Options) *world {
	GinkgoHelper()
	w := prepare(number, o)
	w.run()
	return w
}

func prepare(number int, o watchset.Options) *world {
	GinkgoHelper()
	w := &world{name: user(number), wire: newWire(), config: access.Config(user(number)), ended: make(chan error, 1)}
	w.config.Wrap(w.wrap)
	var err error
	w.Set, err = watchset.New(w.config, o)
	Expect(err).NotTo(HaveOccurred())
	return w
}

func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- w.Start(ctx)
	}()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(BeClosed()) // the answer itself may have been taken by the case
	})
}

// ns is the name of a namespace of the case.
func (w *world) ns(suffix string) string { return w.name + "-" + suffix }

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(admin.Create(ctx, object)).To(Succeed(), "creating %T %s/%s", object, object.GetNamespace(), object.GetName())
	}
}

func remove(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(admin.Delete(ctx, object)).To(Succeed(), "deleting %T %s/%s", object, object.GetNamespace(), object.GetName())
	}
}

// namespaces makes namespaces of the case, and returns their names.
func (w *world) namespaces(ctx context.Context, suffixes ...string) []string {
	GinkgoHelper()
	var names []string
	for _, suffix := range suffixes {
		names = append(names, w.ns(suffix))
		create(ctx, build.Namespace(w.ns(suffix)))
	}
	return names
}

// rule allows verbs on a resource, or on some of its objects.
func rule(gvr schema.GroupVersionResource, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{gvr.Group}, Resources: []string{gvr.Resource}, Verbs: verbs, ResourceNames: names}
}

// grant gives the user rights in a namespace by a Role and a RoleBinding called name, which it returns.
func (w *world) grant(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	binding := build.RoleBinding(namespace, name, name, build.RBACUser(w.name))
	binding.RoleRef.Kind = "Role"
	create(ctx, role, binding)
	w.may(ctx, namespace, rules)
	return role, binding
}

// may waits until the API server knows of rights: it learns them from a watch of its own.
func (w *world) may(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) {
	GinkgoHelper()
	w.counts(ctx, namespace, rules, true)
}

// counts waits until the API server knows that the user has rights, or that they are gone.
func (w *world) counts(ctx context.Context, namespace string, rules []rbacv1.PolicyRule, want bool) {
	GinkgoHelper()
	for _, rule := range rules {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: w.name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0],
				Name: strings.Join(rule.ResourceNames[:min(1, len(rule.ResourceNames))], ""),
			},
		}}
		Eventually(func() (bool, error) {
			answer := review.DeepCopy()
			err := admin.Create(ctx, answer)
			return answer.Status.Allowed, err
		}).Should(Equal(want), "whether the right counts")
	}
}

// grantAll gives the user rights in the whole cluster, and returns the binding.
func (w *world) grantAll(ctx context.Context, name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRoleBinding {
	GinkgoHelper()
	name = w.ns(name)
	binding := build.ClusterRoleBinding(name, name, build.RBACUser(w.name))
	create(ctx, build.ClusterRole(name, rules...), binding)
	w.may(ctx, "", rules)
	return binding
}

// observes lets the user watch the kinds of RBAC.
func (w *world) observes(ctx context.Context) *rbacv1.ClusterRoleBinding {
	GinkgoHelper()
	return w.grantAll(ctx, "rbac-observer", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Verbs: see,
		Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
	})
}

func owner(name string) watchset.Owner {
	return watchset.Owner{Controller: "test", NamespacedName: types.NamespacedName{Namespace: "owners", Name: name}}
}

// lease acquires a lease for owner x.
func (w *world) lease(r watchset.Request) *watchset.Lease {
	GinkgoHelper()
	l, err := w.Acquire(owner("x"), r)
	Expect(err).NotTo(HaveOccurred())
	return l
}

// in is a request for the Secrets of a namespace.
func in(namespace string) watchset.Request {
	return watchset.Request{Resource: secrets, Scope: watchset.Namespace(namespace)}
}

func state(l *watchset.Lease) watchset.State { return l.Status().State }

// becomes waits until a lease is in a state.
func becomes(l *watchset.Lease, want watchset.State) {
	GinkgoHelper()
	Eventually(l.Status).Should(HaveField("State", want))
}

// stays checks for a while that a lease stays in a state.
func stays(l *watchset.Lease, want watchset.State) {
	GinkgoHelper()
	Consistently(l.Status).WithTimeout(test.Quiet(5 * time.Second)).Should(HaveField("State", want))
}

func secret(namespace, name string, labels ...string) *corev1.Secret {
	return build.Secret(namespace, name, "value", labels...)
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
