package report_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// person is a user's identity, and a client configuration with the user's token.
type person struct {
	rights.Identity
	config *rest.Config
}

func people(ctx context.Context) []person {
	var all []person
	for name, groups := range map[string][]string{
		"alice": nil, "devi": {"pay-devs"}, "mia": nil, "bob": nil, "otto": {"pay-oncall"}, "dave": nil, "erin": nil, "carol": nil,
		"eve": nil, "mallory": nil,
	} {
		all = append(all, person{rights.Person(name, groups...), world.Config(name)})
	}
	for _, name := range []string{"deployer", "other"} {
		all = append(all, person{rights.Person("system:serviceaccount:ci:" + name), tokenOf(ctx, "ci", name)})
	}
	return all
}

// questions are requests of every shape, in every place of the fixture.
func questions() []rights.Question {
	var all []rights.Question
	for _, namespace := range []string{"payments", "pay-web", "shop", "ci"} {
		for _, q := range []rights.Question{
			{Verb: "list", Resource: "pods"}, {Verb: "create", Resource: "pods"}, {Verb: "get", Resource: "pods", Subresource: "log"},
			{Verb: "get", Resource: "secrets"}, {Verb: "delete", Resource: "secrets"}, {Verb: "delete", Resource: "secrets", Name: "db"},
			{Verb: "get", Resource: "secrets", Name: "web"},
			{Verb: "update", Group: "apps", Resource: "deployments"}, {Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"},
			{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
			{Verb: "create", Group: "tenancy.warren.dev", Resource: "subnamespaces"},
			{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: "deployer"},
			{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "roles"},
			{Verb: "*", Group: "*", Resource: "*"},
		} {
			q.Namespace = namespace
			all = append(all, q)
		}
		all = append(all, rights.Question{Verb: "get", Resource: "namespaces", Name: namespace, Namespace: namespace})
	}
	return append(all,
		rights.Question{Verb: "get", Resource: "nodes"}, rights.Question{Verb: "list", Resource: "namespaces"},
		rights.Question{Verb: "update", Group: "tenancy.warren.dev", Resource: "lnamespaces", Name: "payments"},
		rights.Question{Verb: "update", Group: "tenancy.warren.dev", Resource: "lnamespaces", Name: "shop"},
		rights.Question{Verb: "delete", Group: "tenancy.warren.dev", Resource: "lnamespaces", Name: "payments"},
		rights.Question{Verb: "impersonate", Resource: "groups", Name: "payments-sudoers"},
		rights.Question{Verb: "impersonate", Resource: "users", Name: "bob"})
}

// reporter is a Reporter that reads as a user.
func reporter(w *devcluster.World, user string) *rights.Reporter {
	return &rights.Reporter{API: w.As(user), Refused: apierrors.IsForbidden}
}

// may asks the API server with the person's token, and impersonates user and groups if they are not empty. A refused impersonation is a
// no.
func (p person) may(ctx context.Context, q rights.Question, user string, groups ...string) (bool, error) {
	config := rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := world.Client(config)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Name: q.Name, Namespace: q.Namespace,
	}
	err = c.Create(ctx, review)
	if user != "" && apierrors.IsForbidden(err) {
		return false, nil
	}
	return review.Status.Allowed, err
}

// truth is the API server's answer to the person, without sudo and with sudo of any tenant.
func (p person) truth(ctx context.Context, q rights.Question) (plain, sudo bool, err error) {
	if plain, err = p.may(ctx, q, ""); err != nil {
		return false, false, err
	}
	for _, tenant := range []string{"payments", "shop"} {
		for _, user := range []string{p.User, "warren:sudo:" + tenant} {
			yes, err := p.may(ctx, q, user, tenant+"-sudoers")
			if sudo = sudo || yes; err != nil {
				return false, false, err
			}
		}
	}
	return plain, sudo, nil
}

// named reports whether a line of who-can applies to the person.
func (p person) named(h rights.Holder) bool {
	switch h.Kind {
	case "User":
		return h.Name == p.User
	case "Group":
		return slices.Contains(p.Groups, h.Name)
	}
	return p.User == "system:serviceaccount:"+h.Namespace+":"+h.Name
}

// cell is one question about one person.
type cell struct {
	person      person
	question    rights.Question
	plain, sudo bool
}

func grid(ctx context.Context) []cell {
	GinkgoHelper()
	var cells []cell
	for _, p := range people(ctx) {
		for _, q := range questions() {
			cells = append(cells, cell{person: p, question: q})
		}
	}
	eachOf(ctx, cells, func(ctx context.Context, c *cell) (err error) {
		c.plain, c.sudo, err = c.person.truth(ctx, c.question)
		return err
	})
	return cells
}

func eachOf[T any](ctx context.Context, all []T, do func(context.Context, *T) error) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range all {
		group.Go(func() error { return do(ctx, &all[i]) })
	}
	Expect(group.Wait()).To(Succeed())
}

// differences collects where a report and the API server differ.
type differences struct {
	mu  sync.Mutex
	all []string
}

func (d *differences) expect(c cell, what string, got any, want bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	word := map[bool]string{true: "yes", false: "no"}[want]
	if fmt.Sprint(got) != word {
		d.all = append(d.all, fmt.Sprintf("%s, %s: %s says %v, the server %s", c.person.User, c.question, what, got, word))
	}
}

var _ = Describe("the reports", Ordered, ContinueOnFailure, func() {
	var cells []cell

	BeforeAll(func(ctx SpecContext) {
		Eventually(func(g Gomega) { // a binding acts a moment after it is written
			for _, namespace := range []string{"payments", "pay-web", "shop"} {
				g.Expect(world.Sudo("bob", map[bool]string{true: "shop", false: "payments"}[namespace == "shop"]).
					Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, serviceAccount("", ""))).To(Succeed())
			}
		}).WithContext(ctx).Should(Succeed())
		cells = grid(ctx)
		count := map[[2]bool]int{}
		for _, c := range cells {
			count[[2]bool{c.plain, c.sudo}]++
		}
		AddReportEntry("cells", fmt.Sprint(count))
		Expect(count).To(HaveLen(4), "the grid has all four kinds of answers: %v", count)
	})

	for caller, incomplete := range map[string][]string{
		controlplane.Admin: nil,
		auditor:            {"can't create subjectaccessreviews"},
	} {
		It("of why say to "+caller+" what the API server does", func(ctx SpecContext) {
			found, one := &differences{}, reporter(world.World, caller)
			eachOf(ctx, cells, func(ctx context.Context, c *cell) error {
				why, err := one.Why(ctx, c.person.Identity, c.question)
				if err != nil {
					return err
				}
				found.expect(*c, "why", why.Cases[0].Allowed, c.plain)
				found.expect(*c, "why with sudo", why.Cases[1].Allowed, c.sudo)
				for _, answer := range why.Cases {
					if answer.Allowed == rights.Yes && len(answer.Via) == 0 {
						return fmt.Errorf("%s, %s: no reason", c.person.User, c.question)
					}
				}
				return nil
			})
			Expect(found.all).To(BeEmpty())
			Expect(mustWhy(ctx, one).Incomplete).To(Equal(incomplete))
		})

		It("of who-can say to "+caller+" what the API server does", func(ctx SpecContext) {
			found, one := &differences{}, reporter(world.World, caller)
			holders := map[rights.Question]*rights.WhoCan{}
			for _, q := range questions() {
				var err error
				holders[q], err = one.WhoCan(ctx, q, true)
				Expect(err).NotTo(HaveOccurred())
			}
			for _, c := range cells {
				subjects := holders[c.question].Subjects
				has := func(sudo bool) string {
					if slices.ContainsFunc(subjects, func(h rights.Holder) bool { return h.Sudo == sudo && c.person.named(h) }) {
						return "yes"
					}
					return "no"
				}
				found.expect(c, "who-can", has(false), c.plain)
				// With sudo, a person has the group's rights. Rights that the person has anyway are reported as rights without sudo.
				if got := has(true); got == "yes" || c.sudo && !c.plain {
					found.expect(c, "who-can with sudo", got, c.sudo)
				}
			}
			Expect(found.all).To(BeEmpty())
		})
	}
})

func mustWhy(ctx context.Context, one *rights.Reporter) *rights.Why {
	GinkgoHelper()
	why, err := one.Why(ctx, rights.Person("bob"), rights.Question{Verb: "list", Resource: "pods", Namespace: "payments"})
	Expect(err).NotTo(HaveOccurred())
	return why
}
