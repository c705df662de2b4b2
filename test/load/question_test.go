package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// question is whether a user may do something, and which list gives the right to it (docs/behaviour/access.md 2.4, 2.8). It is the list
// of the tenants to which place belongs, of tenant or, with anywhere, of any tenant. If none of these is set, nothing gives the right.
type question struct {
	user   string
	groups []string
	does   authorizationv1.ResourceAttributes

	list     list
	place    *place
	tenant   *tenant
	anywhere bool
}

func (q question) String() string {
	d := q.does
	return fmt.Sprintf("%s %s: %s %s %s in %q", q.user, q.groups, d.Verb, strings.Trim(d.Group+"/"+d.Resource+"/"+d.Subresource, "/"),
		d.Name, d.Namespace)
}

// works are what users may do in a tree, as ClusterRole admin lets them; rules are what only its sudoers may, with sudo.
var works = []authorizationv1.ResourceAttributes{
	{Verb: "get", Resource: "secrets"}, {Verb: "create", Resource: "pods"}, {Verb: "delete", Resource: "configmaps"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
	{Verb: "create", Group: v1alpha1.Domain, Resource: "subnamespaces"},
}

var rules = []authorizationv1.ResourceAttributes{
	{Verb: "update", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"}, {Verb: "create", Resource: "resourcequotas"},
	{Verb: "update", Group: v1alpha1.Domain, Resource: "subnamespaces", Subresource: "status"},
}

// never are what no tenant's people may do.
var never = []authorizationv1.ResourceAttributes{
	{Verb: "impersonate", Resource: "groups", Name: "system:masters"}, {Verb: "impersonate", Resource: "users", Name: "admin"},
	{Verb: "list", Resource: "secrets"}, {Verb: "create", Group: v1alpha1.Domain, Resource: "lnamespaces"},
	{Verb: "list", Group: v1alpha1.Domain, Resource: "lnamespaces"}, {Verb: "get", Resource: "secrets", Namespace: "kube-system"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
}

// within is the question whether a user may do something in a namespace, by the list of users of its tenant.
func within(does authorizationv1.ResourceAttributes, user string, p *place) question {
	does.Namespace = p.name
	return question{user: user, does: does, list: users, place: p}
}

// edits and becomes are the questions whether a user may write an LNamespace, and whether the user may impersonate its group of sudoers.
func edits(verb, user string, t *tenant) question {
	return question{user: user, list: managers, tenant: t,
		does: authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.Domain, Resource: "lnamespaces", Name: t.name}}
}

func becomes(user string, t *tenant) question {
	return question{user: user, list: sudoers, tenant: t,
		does: authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups", Name: t.name + "-sudoers"}}
}

// asSudoer is the question whether somebody with sudo of a tenant, who has no other right, may do something in a namespace.
func asSudoer(does authorizationv1.ResourceAttributes, t *tenant, p *place) question {
	does.Namespace = p.name
	return question{user: stranger, groups: []string{t.name + "-sudoers"}, does: does, list: everybody, place: p, tenant: t}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// draw draws a question; half of them are about a person and a tenant of a recent change.
func (o *oracle) draw(r *rand.Rand) question {
	o.mu.Lock()
	t, user, p := pick(r, o.tenants), pick(r, o.people), pick(r, o.all)
	if len(o.hot) > 0 && r.IntN(2) == 0 {
		recent := pick(r, o.hot)
		if t, user = recent.tenant, recent.user; recent.place != nil && r.IntN(2) == 0 {
			p = recent.place
		}
	}
	for try := 0; try < 10 && (len(p.homes) == 0 || r.IntN(4) > 0 && p.homes[0].of != t); try++ {
		p = pick(r, o.all)
	}
	o.mu.Unlock()
	switch n := r.IntN(20); {
	case n < 9:
		return within(pick(r, works), user, p)
	case n < 11:
		return edits(pick(r, []string{"get", "update", "patch"}), user, t)
	case n < 13:
		return becomes(user, t)
	case n < 14:
		return question{user: user, list: sudoers, anywhere: true,
			does: authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: user}}
	case n < 16:
		return asSudoer(pick(r, slices.Concat(rules, works)), t, p)
	case n < 18:
		q := within(pick(r, rules), user, p)
		q.place = nil
		return q
	case n < 19: // nobody becomes another person
		other := pick(r, o.people)
		for other == user {
			other = pick(r, o.people)
		}
		return question{user: user, does: authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: other}}
	}
	return question{user: user, does: pick(r, never)}
}

// remember makes a change the subject of many of the next questions.
func (o *oracle) remember(q question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hot = append(o.hot, q)
	o.hot = o.hot[max(0, len(o.hot)-50):]
}

// authorizer asks the authorizer of the API server, and counts its answers.
type authorizer struct {
	client         kubernetes.Interface
	asked, allowed atomic.Int64
}

func newAuthorizer(config *rest.Config) (*authorizer, error) {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	return &authorizer{client: client}, err
}

func (a *authorizer) ask(ctx context.Context, q question) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.user, Groups: append([]string{"system:authenticated"}, q.groups...), ResourceAttributes: &q.does,
	}}
	answer, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("%s: %w", q, err)
	}
	if problem := answer.Status.EvaluationError; problem != "" && !strings.Contains(problem, "not found") {
		return false, fmt.Errorf("%s: %s", q, problem)
	}
	if a.asked.Add(1); answer.Status.Allowed {
		a.allowed.Add(1)
	}
	return answer.Status.Allowed, nil
}

// askers is how many questions are asked at once; perSecond limits them, so that people and the operator get their share of the machine.
const askers, perSecond = 32, 800

// question asks until ctx is done, and judges each answer.
func (l *load) question(ctx context.Context) {
	var asking errgroup.Group
	limit := rate.NewLimiter(perSecond, askers)
	for n := range askers {
		r := rand.New(rand.NewPCG(l.seed, 1000+uint64(n)))
		asking.Go(func() error {
			for limit.Wait(ctx) == nil {
				q := l.draw(r)
				before := l.standing(q)
				allowed, err := l.ask(ctx, q)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					l.blame(failed, "asking whether %v", err)
				default:
					l.judge(q, allowed, before, l.standing(q))
				}
			}
			return nil
		})
	}
	_ = asking.Wait()
}

// askAll asks everything that a list decides about, when all is settled, and returns how many questions there were and which answers
// are not what the lists say.
func (l *load) askAll(ctx context.Context) (asked int, differ []string, err error) {
	var all []question
	for _, user := range l.people {
		for _, t := range l.tenants {
			all = append(all, edits("update", user, t), becomes(user, t))
		}
		for _, p := range l.all {
			all = append(all, within(works[0], user, p))
		}
	}
	for _, t := range l.tenants {
		for _, p := range l.all {
			all = append(all, asSudoer(rules[0], t, p))
		}
	}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askers)
	answers := make([]bool, len(all))
	for i, q := range all {
		asking.Go(func() (err error) {
			answers[i], err = l.ask(ctx, q)
			return err
		})
	}
	err = asking.Wait()
	for i, q := range all {
		if err == nil && answers[i] != l.says(q) {
			differ = append(differ, fmt.Sprintf("%s: the authorizer says %t", q, answers[i]))
		}
	}
	return len(all), differ, err
}
