package tenants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

// people are the users of the case with that key, and their groups. All names are its own, so that cases run at once.
func people(key string) map[string][]string {
	users := map[string][]string{
		key + "-otto": {key + "-oncall"},
		key + "-devi": {key + "-devs"},
		key + "-olga": {key + "-ops"},
	}
	for _, name := range []string{"alice", "bob", "carol", "dave", "erin", "eve", "mia"} {
		users[key+"-"+name] = nil
	}
	return users
}

// fixture is the fixture of the specification, with names of one case's own.
type fixture struct {
	words.Cluster
	key  string
	mode sudoMode
}

// of returns the fixture of the case with that key. Nothing of it exists yet.
func of(w *devcluster.World, key string) *fixture {
	return &fixture{Cluster: words.Cluster{World: w}, key: key}
}

// beNotFound matches the answer that an object does not exist.
var beNotFound = words.BeNotFound

// own is this case's name for what the specification calls name: s01-payments.
func (f *fixture) own(name string) string { return f.key + "-" + name }

// as is the client of a person, without impersonation.
func (f *fixture) as(person string) client.WithWatch { return f.As(f.own(person)) }

// sudo is the client of a person with sudo of a tenant.
func (f *fixture) sudo(person, tenant string) client.WithWatch {
	return f.Sudo(f.own(person), f.own(tenant))
}

// becoming is the client of a person who impersonates another user and groups.
func (f *fixture) becoming(person, user string, groups ...string) client.WithWatch {
	return f.Impersonate(f.own(person), rest.ImpersonationConfig{UserName: user, Groups: groups})
}

// payments has all kinds of subjects, as the specification's has.
func (f *fixture) payments() *build.LNamespace {
	return build.Tenant(f.own("payments")).
		Users(f.own("alice")).UserSubjects(build.Group(f.own("devs"))).
		Managers(f.own("mia")).
		Sudoers(f.own("bob")).SudoerSubjects(build.Group(f.own("oncall")), build.ServiceAccount(f.own("ci"), "deployer"))
}

// shop is the second tenant, of which bob is a sudoer too.
func (f *fixture) shop() *build.LNamespace {
	return build.Tenant(f.own("shop")).Users(f.own("dave")).Managers(f.own("mia")).Sudoers(f.own("bob"))
}

// create makes objects as the cluster admin. Before an LNamespace, it makes the namespaces of the listed service accounts outside the
// tenant.
func (f *fixture) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		if lns, ok := object.(*v1alpha1.LNamespace); ok {
			f.house(ctx, lns)
		}
		f.Create(ctx, object)
	}
}

// house makes the namespaces of listed service accounts, except the tenant's own root, which is made with the tenant.
func (f *fixture) house(ctx context.Context, lns *v1alpha1.LNamespace) {
	GinkgoHelper()
	for _, s := range slices.Concat(lns.Spec.Users, lns.Spec.Managers, lns.Spec.Sudoers) {
		if s.Namespace != "" && s.Namespace != lns.Name {
			Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Namespace(s.Namespace)))).To(Succeed())
		}
	}
}

// settle makes tenants and waits until they are Ready.
func (f *fixture) settle(ctx context.Context, tenants ...*build.LNamespace) {
	GinkgoHelper()
	for _, tenant := range tenants {
		f.create(ctx, tenant.Object())
	}
	for _, tenant := range tenants {
		f.ready(ctx, tenant.Name)
	}
}

// ready waits until the LNamespace is Ready, in its present generation.
func (f *fixture) ready(ctx context.Context, name string) *v1alpha1.LNamespace {
	GinkgoHelper()
	return f.says(ctx, name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// says waits until a condition speaks of the present generation and has status and reason.
func (f *fixture) says(ctx context.Context, name string, t v1alpha1.ConditionType, status metav1.ConditionStatus,
	reason v1alpha1.Reason) *v1alpha1.LNamespace {
	GinkgoHelper()
	lns := build.Tenant(name).Object()
	f.Says(ctx, lns, t, status, reason)
	return lns
}

// get reads an LNamespace.
func (f *fixture) get(ctx context.Context, name string) *v1alpha1.LNamespace {
	GinkgoHelper()
	lns := &v1alpha1.LNamespace{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: name}, lns)).To(Succeed())
	return lns
}

// grow makes a SubNamespace and waits until the bindings of its tenant are there.
func (f *fixture) grow(ctx context.Context, parent, name string) {
	GinkgoHelper()
	f.create(ctx, build.SubNamespace(parent, name))
	for _, binding := range []string{"warren:sudoers", "warren:users"} {
		f.Exists(ctx, build.RoleBinding(name, binding, ""))
	}
}

// set replaces lists of an LNamespace by a patch with a person's client. It repeats the patch until the API server's authorizer knows the
// person's right.
func (f *fixture) set(ctx context.Context, c client.Client, tenant string, spec map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	Expect(err).NotTo(HaveOccurred())
	allowed(ctx, c, request{"set " + string(patch) + " of " + tenant, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}, client.RawPatch(types.MergePatchType, patch))
	}})
}

// pair returns the two objects of a pair, empty, to read into them.
func pair(name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name}
	return []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: meta}, &rbacv1.ClusterRole{ObjectMeta: meta}}
}

// references names the tenants that own both objects of a self pair, with mark:NAME for a reference that is given up.
func (f *fixture) references(ctx context.Context, user string) func() ([]string, error) {
	return func() ([]string, error) {
		var names []string
		for i, object := range pair("warren:self:" + user) {
			if err := f.Admin().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return nil, err
			}
			of := []string{}
			for _, reference := range object.GetOwnerReferences() {
				name := reference.Name
				if reference.UID == "mark-for-deletion" {
					name = "mark:" + name
				}
				of = append(of, name)
			}
			slices.Sort(of)
			if i == 1 && !slices.Equal(of, names) {
				return nil, fmt.Errorf("role %q and binding %q differ", of, names)
			}
			names = of
		}
		return names, nil
	}
}

// event waits for an Event on an LNamespace whose message holds a text.
func (f *fixture) event(ctx context.Context, tenant string, reason v1alpha1.Reason, text string) {
	GinkgoHelper()
	Eventually(ctx, f.Messages(build.Tenant(tenant).Object(), reason)).Should(ContainElement(ContainSubstring(text)),
		"Event %s on %s", reason, tenant)
}

// serviceAccount makes a service account with its namespace, where that is missing, and returns a client configuration with its token.
func (f *fixture) serviceAccount(ctx context.Context, namespace, name string) *rest.Config {
	GinkgoHelper()
	Expect(test.UntilWebhookAnswers(func() error { return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Namespace(namespace))) })).
		To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	f.create(ctx, account)
	token := &authenticationv1.TokenRequest{}
	Expect(f.Admin().SubResource("token").Create(ctx, account, token)).To(Succeed())
	config := rest.AnonymousClientConfig(f.Config(controlplane.Admin))
	config.BearerToken = token.Status.Token
	config.QPS = -1
	return config
}

// with is a client with the token in config that impersonates user and groups.
func (f *fixture) with(config *rest.Config, user string, groups ...string) client.WithWatch {
	GinkgoHelper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := f.Client(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// label sets a label of a Namespace; nil takes it off.
func (f *fixture) label(ctx context.Context, namespace, key string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(f.Admin().Patch(ctx, build.Namespace(namespace), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}
