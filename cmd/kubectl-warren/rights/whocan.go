package rights

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// atOnce is how many requests a report sends at once.
const atOnce = 8

// WhoCan lists everybody who may make a request.
type WhoCan struct {
	Question Question `json:"question"`
	Subjects []Holder `json:"subjects"`
	// LeftOut is how many subjects were left out because they are parts of Kubernetes itself. A flag includes them.
	LeftOut int `json:"leftOut,omitempty"`
	// Note states what the answer doesn't cover.
	Note string `json:"note,omitempty"`
	// Incomplete lists what the report lacks because the caller may not read or ask it.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Holder is a subject that may make the request, with or without sudo.
type Holder struct {
	v1alpha1.Subject
	Sudo bool `json:"sudo"`
	// OnRequest reports that the subject must ask for sudo first, by a SudoRequest, unless Until has the end of one in force.
	OnRequest bool         `json:"onRequest,omitempty"`
	Until     *metav1.Time `json:"until,omitempty"`
	// Tenant is the tenant whose sudo the subject needs.
	Tenant string `json:"tenant,omitempty"`
	Via    []Via  `json:"via"`
}

// maxCandidates is how many subjects of bindings WhoCan asks about at most: whoever may write RoleBindings decides how
// many there are.
const maxCandidates = 1000

// WhoCan finds everybody whom a binding lets make the request, by itself or by sudo, and asks the API server's
// authorizer about each. Those bound in the namespace come first, then those with sudo, then those bound in the whole
// cluster. Parts of Kubernetes itself are counted and left out, unless everything is set.
func (r *Reporter) WhoCan(ctx context.Context, q Question, everything bool) (*WhoCan, error) {
	all, err := r.readerAsCaller().bindingsHolding(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	ask, candidates := r.askerAsCaller(), all.findCandidates(q)
	if more := len(candidates) - maxCandidates; more > 0 {
		candidates = candidates[:maxCandidates]
		r.memory.unread.addLine(fmt.Sprintf("%d more subjects of bindings are left out: ask about one with kubectl warren why", more))
	}
	found := make([][]Holder, len(candidates))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, c := range candidates {
		group.Go(func() (err error) {
			found[i], err = ask.confirmCandidate(limited, c, q)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	result := &WhoCan{Question: q, Subjects: []Holder{}, Note: q.admissionNote()}
	for _, h := range slices.Concat(found...) {
		if !everything && partOfKubernetes(h.Subject) {
			result.LeftOut++
			continue
		}
		result.Subjects = append(result.Subjects, h)
	}
	slices.SortStableFunc(result.Subjects, compareHolders)
	result.Incomplete = r.memory.unread.sortedGaps()
	return result, nil
}

// confirmCandidate returns the candidate, unless the authorizer denies the request or nothing is known to allow it. For
// a group of sudoers it returns its sudoers.
func (a *asker) confirmCandidate(ctx context.Context, c candidate, q Question) ([]Holder, error) {
	v, err := a.askWhetherMay(ctx, identityOfSubject(c.Subject), q)
	if err != nil || v.answer == No || v.answer == Unknown && len(c.via) == 0 {
		return nil, err
	}
	via := bindingsOrReason(c.via, v)
	if name, is := tenantOfTemporarySudoer(c.Subject); is {
		return a.eligibleFor(ctx, c.Subject, name, via)
	}
	name, ok := tenantOfSudoGroup(c.Subject)
	if !ok {
		return []Holder{{Subject: subjectOfList(c.Subject), Via: via}}, nil
	}
	of, err := a.read.readTenant(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case of.exists == No:
		return []Holder{{Subject: subjectOfList(c.Subject), Via: via}}, nil
	}
	sudoers, err := a.read.findSudoers(ctx, name)
	if err != nil {
		return nil, err
	}
	via = reachedThrough(subjectOfList(c.Subject).String(), via)
	if of.exists == Unknown && len(sudoers) == 0 {
		return []Holder{{Subject: subjectOfList(c.Subject), Sudo: true, Tenant: name, Via: via}}, nil
	}
	return a.sudoersWhoMay(ctx, sudoers, name, via, q)
}

// sudoersWhoMay returns the sudoers that may sudo and then make the request, or for whom this is unknown.
func (a *asker) sudoersWhoMay(ctx context.Context, sudoers []rbacv1.Subject, name string, via []Via,
	q Question) ([]Holder, error) {
	var holders []Holder
	for _, s := range sudoers {
		as, answer, err := a.raiseBySudo(ctx, identityOfSubject(s), name, q)
		if err == nil && answer == Yes {
			var v rightDecision
			v, err = a.askWhetherMay(ctx, as, q)
			answer = v.answer
		}
		if err != nil {
			return nil, err
		}
		if answer != No { // the group may, and the subject is listed or bound; Incomplete states what is unknown
			holders = append(holders, Holder{Subject: subjectOfList(s), Sudo: true, Tenant: name, Via: via})
		}
	}
	return holders, nil
}

func compareHolders(a, b Holder) int {
	return cmp.Or(cmp.Compare(a.rankOfHolder(), b.rankOfHolder()), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.delay(), b.delay()))
}

// delay orders the holders with sudo of one tenant: those who always have it, those who have it for a time, and those who must ask for it.
func (h Holder) delay() int {
	switch {
	case !h.OnRequest:
		return 0
	case h.Until != nil:
		return 1
	}
	return 2
}

// rankOfHolder orders holders: those that a RoleBinding names, or whose binding is not known, come first, then those
// with sudo, then those that only a ClusterRoleBinding names.
func (h Holder) rankOfHolder() int {
	wide := !slices.ContainsFunc(h.Via, func(v Via) bool { return v.Binding == nil || v.Binding.Kind == kindRoleBinding })
	switch {
	case !wide && !h.Sudo:
		return 0
	case h.Sudo:
		return 1
	}
	return 2
}
