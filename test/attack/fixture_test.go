package attack_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// The actors who send the requests. Most of their rights come from the lists tenants, strewn and written in given_test.go.
var (
	alice = actor{user: "alice"} // a user of payments
	mia   = actor{user: "mia"}   // its manager
	bob   = actor{user: "bob", as: rest.ImpersonationConfig{UserName: "bob", Groups: []string{"payments-sudoers"}}}
	carol = actor{user: "carol"} // cluster-admin in plain namespaces
	erin  = actor{user: "erin"}  // creates namespaces
	admin = actor{user: controlplane.Admin}
	op    = actor{user: controlplane.Operator}

	clara   = actor{user: "clara"}   // a cluster admin by RBAC: the specification's cl
	named   = actor{user: "named"}   // updates and patches one namespace by its name
	patcher = actor{user: "patcher"} // patches all namespaces
	updater = actor{user: "updater"} // updates and patches all namespaces
	creator = actor{user: "creator"} // creates LNamespaces
	binder  = actor{user: "binder"}  // binds ClusterRole view in the whole cluster

	ivan = actor{user: "ivan"} // cluster-admin in an instance of a template, by its template's binding

	deployer            = actor{user: "system:serviceaccount:pay-web:deployer"} // patches its namespace
	robot               = actor{user: "system:serviceaccount:kube-system:robot"}
	namespaceController = actor{user: "system:serviceaccount:kube-system:namespace-controller"}
	exporter            = actor{user: "system:serviceaccount:warren-system:warren-billing-exporter"}
	garbageCollector    = actor{user: "system:serviceaccount:kube-system:generic-garbage-collector"}
)

func users() map[string][]string {
	all := map[string][]string{deployer.user: {"system:serviceaccounts", "system:serviceaccounts:pay-web"}}
	maps.Copy(all, askers())
	for _, a := range []actor{clara, named, patcher, updater, creator, binder, ivan} {
		all[a.user] = nil
	}
	all[exporter.user] = []string{"system:serviceaccounts", "system:serviceaccounts:warren-system"}
	for _, a := range []actor{robot, namespaceController, garbageCollector} {
		all[a.user] = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}
	}
	return all
}

// fixture is a World whose API server behaves like one minor version of Kubernetes. furnish adds the tenants of the specification.
type fixture struct {
	*devcluster.World
}

// kindsConfig makes the operator propagate every kind whose copies a row attacks. The policies and the operator's rights fit these kinds.
const kindsConfig = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
subNamespaces: {labels: ["pod-security.kubernetes.io/*"]}
billing: {namespaceLabels: {costCenter: finance.example.com/cost-center}}
propagation:
  retry: {min: 200ms, max: 2s}
  kinds:
  - {kind: Secret}
  - {kind: ConfigMap}
  - {kind: ServiceAccount}
  - {kind: LimitRange}
  - {kind: ResourceQuota}
  - {kind: Service}
  - {group: rbac.authorization.k8s.io, kind: Role, mode: All}
  - {group: rbac.authorization.k8s.io, kind: RoleBinding}
  - {group: networking.k8s.io, kind: NetworkPolicy}
`

// start starts the World, without an operator.
func (f *fixture) start(ctx context.Context) (err error) {
	f.World, err = devcluster.Start(ctx, devcluster.Options{
		ControlPlane: controlplane.Options{
			Users: users(),
			// Objects that are created before a quota has a status are counted only at the next full count, by default every five minutes.
			ControllerManagerArgs: []string{"--resource-quota-sync-period=5s"},
		},
		Components:      []string{"config/components/billing-exporter", "config/components/requests"},
		Operator:        devcluster.OperatorOptions{Config: kindsConfig},
		WithoutOperator: true,
	})
	return err
}

// furnish runs the operator until the tenants are complete, and stops it. Then it creates what a running operator would correct.
func (f *fixture) furnish(ctx context.Context) {
	GinkgoHelper()
	f.settle(ctx, subNamespaces...)
	f.askForSudo(ctx)
	code, err := f.Operator.Stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(BeZero())
	f.given(ctx, admin, strewn...)
	f.given(ctx, admin, timers...)
	f.given(ctx, admin, distributed...)
	f.given(ctx, op, written...)
	f.given(ctx, admin, leaving...)
	f.seen(ctx)
}

// settle runs the operator until the tenants and these sub-namespaces of payments are as they should be.
func (f *fixture) settle(ctx context.Context, names ...string) {
	GinkgoHelper()
	_, err := f.StartOperator(ctx)
	Expect(err).NotTo(HaveOccurred())
	f.given(ctx, admin, tenants...)
	f.given(ctx, admin, sources...)
	for _, name := range names {
		f.given(ctx, admin, create("subnamespace payments/"+name, ""))
	}
	for _, name := range names {
		for _, kind := range []string{"secret %s/s", "configmap %s/seed", "service %s/web", "resourcequota %s/quota",
			"rolebinding %s/warren:users", "rolebinding %s/warren:sudoers"} {
			f.appears(ctx, fmt.Sprintf(kind, name))
		}
	}
	for _, name := range []string{"victim", "orders", "doomed"} {
		f.appears(ctx, "rolebinding "+name+"/warren:sudoers")
	}
}

// given sends each request again and again until it succeeds.
func (f *fixture) given(ctx context.Context, by actor, requests ...request) {
	GinkgoHelper()
	c := f.caller(by)
	for _, request := range requests {
		Eventually(ctx, func(ctx context.Context) error { return request.send(ctx, c) }).
			Should(Succeed(), "%s: %s", by, request.what)
	}
}

// appears waits until the target exists.
func (f *fixture) appears(ctx context.Context, target string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, target) }).
		ShouldNot(BeNil(), target)
}

// gone waits until the target no longer exists.
func (f *fixture) gone(ctx context.Context, target string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, target) }).
		Should(BeNil(), target)
}

// stays expects for a while that the target exists and doesn't change.
func (f *fixture) stays(ctx context.Context, target string) {
	GinkgoHelper()
	before := f.look(ctx, target)
	Expect(before).NotTo(BeNil(), target)
	Consistently(ctx, func(ctx context.Context) any { return f.look(ctx, target) }).
		WithTimeout(test.Quiet(suite.Patience)).Should(Equal(before), target)
}

// may asks the API server's authorizer whether an actor has a right.
func (f *fixture) may(ctx context.Context, who actor, verb, group, resource, namespace string) (bool, error) {
	user, groups := who.user, []string{"system:authenticated"}
	if who.as.UserName != "" {
		user, groups = who.as.UserName, append(slices.Clone(who.as.Groups), groups...)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: group, Resource: resource}}}
	err := f.Admin().Create(ctx, review)
	return review.Status.Allowed, err
}

// seen waits until the authorizer knows all rights, so that each attack is refused for the expected reason. The authorizer learns of the
// rights in the order in which they were granted.
func (f *fixture) seen(ctx context.Context) {
	GinkgoHelper()
	for _, right := range []struct {
		who                              actor
		verb, group, resource, namespace string
	}{
		{carol, "update", "", "namespaces", "carols"},
		{clara, "update", "", "namespaces", ""},
		{deployer, "patch", "", "namespaces", "pay-web"},
		{robot, "update", "", "services", "pay-service"},
		{creator, "create", "tenancy.warren.dev", "lnamespaces", ""},
		{binder, "create", "rbac.authorization.k8s.io", "clusterrolebindings", ""},
		{patcher, "patch", "", "namespaces", ""},
		{updater, "update", "", "namespaces", ""},
		{erin, "create", "", "namespaces", ""},
		{exporter, "patch", "tenancy.warren.dev", "lnamespaces", ""},
		{ivan, "patch", "", "namespaces", "levelled"},
	} {
		Eventually(ctx, f.may).WithArguments(right.who, right.verb, right.group, right.resource, right.namespace).
			Should(BeTrue(), "%+v", right)
	}
	for _, name := range append([]string{"payments"}, subNamespaces...) {
		Eventually(ctx, f.may).WithArguments(alice, "update", "", "secrets", name).Should(BeTrue())
		Eventually(ctx, f.may).WithArguments(bob, "update", "", "namespaces", name).Should(BeTrue())
	}
}

// open opens the wall: it deletes the bindings of all policies, so that the policies refuse nothing.
func (f *fixture) open(ctx context.Context) {
	GinkgoHelper()
	bindings := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	Expect(f.Admin().List(ctx, bindings)).To(Succeed())
	Expect(bindings.Items).NotTo(BeEmpty())
	for i := range bindings.Items {
		Expect(f.Admin().Delete(ctx, &bindings.Items[i])).To(Succeed())
	}
}
