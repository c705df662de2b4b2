package rights_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// right identifies a rule of the operator by one of its resources and verbs.
type right struct {
	role                  string // empty: the Role in the operator's own namespace
	group, resource, name string
	verb                  string
	// refused is a request, as verb and resource, that fails without the rule.
	refused string
	// later says what will need a rule that no request needs yet: nothing is refused without it.
	later string
	// also says that another rule grants the same in overlay standard, so that the authorizer still says yes.
	also bool
}

const (
	manages = "warren-manager"
	kinds   = "warren-kinds-configured"

	ours      = "tenancy.warren.dev"
	admission = "admissionregistration.k8s.io"
)

// rights are all rules of config/testdata/operator_rbac.yaml.
var rights = []right{
	{role: manages, resource: "namespaces", verb: "list", refused: "list namespaces"},
	{role: manages, group: ours, resource: "lnamespaces", verb: "list", refused: "list lnamespaces"},
	{role: manages, group: ours, resource: "lnamespaces/status", verb: "update", refused: "patch lnamespaces/status"},
	{role: manages, group: ours, resource: "lnamespaces/finalizers", verb: "update",
		later: "owner references that block a deletion, where OwnerReferencesPermissionEnforcement is on"},
	{role: manages, group: ours, resource: "hierarchyconfigurations", verb: "create", refused: "create hierarchyconfigurations"},
	{role: manages, group: rbacv1.GroupName, resource: "clusterroles", verb: "list", refused: "list clusterroles"},
	{role: manages, group: rbacv1.GroupName, resource: "clusterroles", verb: "escalate", refused: "create clusterroles"},
	{role: manages, resource: "limitranges", verb: "list", refused: "list limitranges"},
	{role: manages, resource: "events", verb: "create", refused: "create events"},
	{role: manages, group: "authorization.k8s.io", resource: "subjectaccessreviews", verb: "create", refused: "create subjectaccessreviews"},
	{role: manages, group: "authentication.k8s.io", resource: "tokenreviews", verb: "create", refused: "create tokenreviews"},
	{role: manages, group: "apiextensions.k8s.io", resource: "customresourcedefinitions", verb: "get",
		refused: "get customresourcedefinitions"},
	{role: manages, group: admission, resource: "validatingadmissionpolicies", name: "warren-copy", verb: "get",
		refused: "get validatingadmissionpolicies"},
	{role: manages, group: admission, resource: "validatingwebhookconfigurations", name: "warren", verb: "get",
		refused: "list validatingwebhookconfigurations"},
	{role: kinds, resource: "secrets", verb: "list", refused: "list secrets"},
	{role: kinds, resource: "configmaps", verb: "list", refused: "list configmaps"},
	{group: "coordination.k8s.io", resource: "leases", verb: "create", refused: "create leases"},
	{group: "coordination.k8s.io", resource: "leases", name: "warren", verb: "get", refused: "get leases"},
	{resource: "secrets", name: "warren-webhook-cert", verb: "get", also: true,
		later: "the certificate of its webhooks, where component hardened takes the other right on Secrets away"},
}

var _ = Describe("the operator without one of its rules", Ordered, ContinueOnFailure, func() {
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		var err error
		w, err = devcluster.Start(ctx, devcluster.Options{WithoutOperator: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
	})

	It("is in the table with every rule", func(ctx SpecContext) {
		for _, r := range []right{{role: manages}, {role: kinds}, {}} {
			rules, _ := r.rules(ctx, w)
			for _, rule := range rules {
				Expect(slices.ContainsFunc(rights, func(known right) bool { return known.role == r.role && known.is(rule) })).
					To(BeTrue(), "%s: %+v", r.role, rule)
			}
		}
	})

	It("is refused nothing when it has them all", func(ctx SpecContext) {
		d := startDay(ctx, w, "all")
		defer d.end(ctx)
		Eventually(d.done).WithContext(ctx).Should(Succeed())
		Expect(d.refused(ctx)).To(BeEmpty())
	})

	for i, r := range rights {
		It(r.String(), func(ctx SpecContext) {
			rules, write := r.rules(ctx, w)
			without := slices.DeleteFunc(slices.Clone(rules), r.is)
			Expect(without).To(HaveLen(len(rules)-1), "one rule is taken away")
			write(without)
			defer func() {
				write(rules)
				Eventually(r.allowed).WithContext(ctx).WithArguments(w).Should(BeTrue())
			}()
			Eventually(r.allowed).WithContext(ctx).WithArguments(w).Should(Equal(r.also))

			d := startDay(ctx, w, fmt.Sprintf("t%02d", i))
			defer d.end(ctx)
			if r.later == "" {
				Eventually(d.refused).WithContext(ctx).Should(ContainElement(r.refused))
				return
			}
			Eventually(d.done).WithContext(ctx).Should(Succeed())
			Expect(d.refused(ctx)).To(BeEmpty(), "what needs it is there now: let the table say what is refused")
		}, SpecTimeout(2*suite.Patience))
	}
})

func (r right) String() string {
	what := fmt.Sprintf("%s %s%s", r.verb, r.resource, r.name)
	if r.later != "" {
		return what + ": nothing fails yet; it is for " + r.later
	}
	return what + ": may not " + r.refused
}

// is reports whether a rule is this one.
func (r right) is(rule rbacv1.PolicyRule) bool {
	names := r.role != "" || (r.name == "") == (len(rule.ResourceNames) == 0) // two rules on Leases
	resource := slices.Contains(rule.Resources, r.resource) || r.resource == "" && len(rule.NonResourceURLs) > 0
	return names && resource && slices.Contains(rule.Verbs, r.verb)
}

// rules reads the role that has the rule. It returns the role's rules, and a function that replaces them.
func (r right) rules(ctx context.Context, w *devcluster.World) ([]rbacv1.PolicyRule, func([]rbacv1.PolicyRule)) {
	GinkgoHelper()
	cluster, own := build.ClusterRole(r.role), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: manages}}
	object, rules := client.Object(own), &own.Rules
	if r.role != "" {
		object, rules = cluster, &cluster.Rules
	}
	Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	var held []rbacv1.PolicyRule // copies, because an Update decodes its answer into the rules that it sent
	for _, rule := range *rules {
		held = append(held, *rule.DeepCopy())
	}
	return held, func(others []rbacv1.PolicyRule) {
		GinkgoHelper()
		*rules = others
		Expect(w.Admin().Update(ctx, object)).To(Succeed())
	}
}

// allowed asks the authorizer about the right.
func (r right) allowed(ctx context.Context, w *devcluster.World) (bool, error) {
	resource, sub := r.resource, ""
	if i := slices.Index([]byte(resource), '/'); i >= 0 {
		resource, sub = resource[:i], resource[i+1:]
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: controlplane.Operator, Groups: []string{"system:serviceaccounts",
		"system:authenticated"}}
	if r.resource == "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: "/version", Verb: r.verb}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: resource,
			Subresource: sub, Name: r.name}
		if r.role == "" {
			spec.ResourceAttributes.Namespace = "warren-system"
		}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	err := w.Admin().Create(ctx, review)
	return review.Status.Allowed, err
}
