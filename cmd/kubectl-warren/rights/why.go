package rights

import (
	"cmp"
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Why reports whether one person may make a request, without sudo and with it.
type Why struct {
	Identity Identity `json:"identity"`
	Question Question `json:"question"`
	// Cases are two: without sudo, and with it; and with sudo on request, where the person may ask for that or has it.
	Cases []Case `json:"cases"`
	// Note states what the answers don't cover.
	Note       string   `json:"note,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`
}

// Case is the answer without sudo, or with it.
type Case struct {
	Sudo bool `json:"sudo"`
	// OnRequest reports that the person must ask for sudo first, by a SudoRequest, unless Until has the end of one in force.
	OnRequest bool         `json:"onRequest,omitempty"`
	Until     *metav1.Time `json:"until,omitempty"`
	Allowed   Answer       `json:"allowed"`
	// Tenant is the tenant whose sudo allows the request, and As the identity that the person then has.
	Tenant string    `json:"tenant,omitempty"`
	As     *Identity `json:"as,omitempty"`
	Via    []Via     `json:"via,omitempty"`
	// Note states why sudo doesn't help.
	Note string `json:"note,omitempty"`
}

// Why reports whether an identity may make a request, and why. Person returns such an identity.
func (r *Reporter) Why(ctx context.Context, id Identity, q Question) (*Why, error) {
	ask := r.askerAsCaller()
	v, err := ask.askWhetherMay(ctx, id, q)
	if err != nil {
		return nil, err
	}
	via, err := ask.findAllowingBindings(ctx, id, q, v)
	if err != nil {
		return nil, err
	}
	place, tenants, err := ask.read.candidateTenants(ctx, id, q)
	if err != nil {
		return nil, err
	}
	raised, err := ask.answerWithSudo(ctx, id, q, place, tenants)
	if err != nil {
		return nil, err
	}
	cases := []Case{{Allowed: v.answer, Via: via}, raised}
	if asked, err := ask.answerOnRequest(ctx, id, q, place); err != nil {
		return nil, err
	} else if asked != nil {
		cases = append(cases, *asked)
	}
	return &Why{Identity: id, Question: q, Cases: cases, Note: q.admissionNote(), Incomplete: r.memory.unread.sortedGaps()}, nil
}

// answerWithSudo tries the sudo of each tenant that the person may be a sudoer of. candidateTenants returns them, and place.
func (a *asker) answerWithSudo(ctx context.Context, id Identity, q Question, place string, names []string) (Case, error) {
	result := Case{Sudo: true, Allowed: No}
	var may, unsure []string
	for _, name := range names {
		as, answer, err := a.raiseBySudo(ctx, id, name, q)
		if err != nil {
			return Case{}, err
		}
		switch answer {
		case Unknown:
			unsure = append(unsure, name)
			continue
		case No:
			continue
		}
		may = append(may, name)
		v, err := a.askWhetherMay(ctx, as, q)
		if err != nil {
			return Case{}, err
		}
		if v.answer == Yes {
			via, err := a.reasonsWithSudo(ctx, id, as, name, q, v)
			return Case{Sudo: true, Allowed: Yes, Tenant: name, As: &as, Via: via}, err
		}
		if v.answer == Unknown {
			unsure = append(unsure, name)
		}
	}
	switch {
	case len(unsure) > 0:
		result.Allowed, result.Note = Unknown, "it depends on sudo of "+strings.Join(keepOwnTenant(unsure, cmp.Or(place, q.Namespace)), ", ")
		// Only a command that begins with kubectl sudo uses raised rights, so this report doesn't ask with them.
		if me, err := a.read.readCaller(ctx); err == nil && id.equalsIdentity(me) && len(may) > 0 {
			result.Note += ", which you may use: kubectl sudo warren why has the answer"
		}
	case len(may) > 0:
		result.Note = "not allowed with sudo of " + strings.Join(may, " or ")
	case len(names) == 0 && a.read.tenantsUnknown():
		result.Allowed = Unknown
	default:
		result.Note = id.labelInReports() + " has no sudo for this request"
	}
	return result, nil
}

// keepOwnTenant returns own alone if it is among the tenants whose sudo is unsure: other tenants matter little then. Where
// the caller may not read the namespace, own is its name, because a root has the name of its tenant.
func keepOwnTenant(unsure []string, own string) []string {
	if slices.Contains(unsure, own) {
		return []string{own}
	}
	return unsure
}

// reasonsWithSudo returns the bindings that allow the request to the impersonated identity, and the pairs that let the
// person impersonate it.
func (a *asker) reasonsWithSudo(ctx context.Context, id, as Identity, name string, q Question,
	v rightDecision) ([]Via, error) {
	all, err := a.read.bindingsHolding(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	group := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: v1alpha1.SudoersGroup(name)}
	via := reachedThrough(group.String(), all.thoseGranting(q, identityOfSubject(subjectOfBinding(group))))
	via = bindingsOrReason(append(via, all.thoseGranting(q, as.Unraised())...), v)
	wide, err := a.read.bindingsInNamespace(ctx, "")
	for _, b := range wide.items {
		pair := grants.LetsSudo(b.Name, name) || b.Name == grants.SelfName(id.User)
		if pair && slices.ContainsFunc(b.subjects, id.matchesSubject) {
			via = append(via, b.viaBinding())
		}
	}
	return via, err
}

// candidateTenants returns the tenants whose sudo may allow the request: place, the tenant of the question's namespace,
// and those that list the person. If the caller may not list tenants, addOwnTenants finds the latter.
func (r *reader) candidateTenants(ctx context.Context, id Identity,
	q Question) (place string, names []string, err error) {
	place, err = r.tenantOfQuestion(ctx, q)
	if err != nil {
		return "", nil, err
	}
	if place != "" {
		names = append(names, place)
	}
	list := &v1alpha1.LNamespaceList{}
	ok, err := r.readListOrGap(ctx, list, "lnamespaces", "")
	if apierrors.IsNotFound(err) {
		return place, names, nil // without Warren there is no sudo
	}
	if !ok {
		if err == nil {
			names, err = r.addOwnTenants(ctx, id, names)
		}
		return place, names, err
	}
	for _, lns := range list.Items {
		r.memory.tenants.rememberValue(lns.Name, &tenant{exists: Yes, spec: lns.Spec})
		listed := slices.ContainsFunc(lns.Spec.Sudoers,
			func(s v1alpha1.Subject) bool { return id.matchesSubject(subjectOfBinding(s)) })
		if listed && lns.Name != place {
			names = append(names, lns.Name)
		}
	}
	return place, names, nil
}

// addOwnTenants adds the tenants whose sudoers the caller may become, if the question is about the caller.
func (r *reader) addOwnTenants(ctx context.Context, id Identity, names []string) ([]string, error) {
	me, err := r.readCaller(ctx)
	if err != nil || me.User != id.User {
		return names, err
	}
	// The rules of ClusterRoleBindings are the same in each namespace.
	own := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault}}
	if err := r.api.Create(ctx, own); err != nil && !r.refused(err) {
		return names, err
	}
	var mine []string
	for _, rule := range own.Status.ResourceRules {
		if !slices.Contains(rule.Resources, "groups") {
			continue
		}
		for _, group := range rule.ResourceNames {
			if name, ok := strings.CutSuffix(group, v1alpha1.SudoersSuffix); ok && !slices.Contains(names, name) {
				addOnceTo(&mine, name)
			}
		}
	}
	slices.Sort(mine)
	return append(names, mine...), nil
}

// tenantOfQuestion returns the tenant of the question's namespace, or of the LNamespace that it is about; "" if there
// is none, or the caller may not read the namespace.
func (r *reader) tenantOfQuestion(ctx context.Context, q Question) (string, error) {
	if q.Group == v1alpha1.GroupVersion.Group && q.Resource == "lnamespaces" {
		return q.Name, nil
	}
	if q.Namespace == "" {
		return "", nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.api.Get(ctx, client.ObjectKey{Name: q.Namespace}, namespace)
	switch {
	case err == nil:
		name, _, _ := strings.Cut(namespace.Annotations[v1alpha1.AnnotationAncestry], "/")
		return name, nil
	case apierrors.IsNotFound(err):
		return "", nil
	case r.refused(err):
		r.memory.unread.recordGap("get namespaces/" + q.Namespace)
		return "", nil
	}
	return "", err
}

// tenantsUnknown reports whether the caller may not list the tenants.
func (r *reader) tenantsUnknown() bool {
	return slices.Contains(r.memory.unread.sortedGaps(), "can't list lnamespaces")
}

// labelInReports returns the name of an identity in reports.
func (id Identity) labelInReports() string {
	if id.User == "" {
		return strings.Join(id.Groups, ", ")
	}
	return id.User
}

// Describe answers the question in words.
func (y *Why) Describe() string {
	who, plain, raised := y.Identity.labelInReports(), y.Cases[0], y.Cases[1]
	switch {
	case plain.Allowed == No && raised.Allowed == No && len(y.Cases) > 2 && y.Cases[2].Allowed == Yes:
		return who + y.Cases[2].describeAsking()
	case plain.Allowed == Yes:
		return who + " may, without sudo."
	case raised.Allowed == Yes && plain.Allowed == Unknown:
		return who + " may, with sudo of " + raised.Tenant +
			". Without sudo, the answer is not known: you may not read all that decides it."
	case raised.Allowed == Yes:
		return who + " may, but only with sudo of " + raised.Tenant + "."
	case plain.Allowed == No && raised.Allowed == No:
		return who + " may not, neither without sudo nor with it."
	case plain.Allowed == No:
		return who + " may not without sudo. With sudo, the answer is not known: you may not read all that decides it."
	}
	return "Not known: you may not read all that decides it."
}
