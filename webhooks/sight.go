package webhooks

import (
	"context"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

const (
	// mostSeen bounds the namespaces about which one request asks whether its user may see them.
	mostSeen = 50
	// sightTimeout bounds these questions, well below the shortest timeout of a webhook. Without an answer by then, no
	// further namespace is named.
	sightTimeout = time.Second
)

// visibility states which namespaces an answer may name to the user of a request: those that the request names itself,
// and those that the user may get. The rules run twice: the first run collects the names that they would use, the
// second one gets the authorizer's answers.
type visibility struct {
	named   []string
	wanted  []string
	allowed map[string]bool // nil in the first run, whose judgement is final if the user may get every namespace
}

// maySeeNamespace reports whether the answer may name a namespace.
func (g *visibility) maySeeNamespace(namespace string) bool {
	if slices.Contains(g.named, namespace) {
		return true
	}
	if g.allowed == nil {
		if len(g.wanted) < mostSeen && !slices.Contains(g.wanted, namespace) {
			g.wanted = append(g.wanted, namespace)
		}
		return true
	}
	return g.allowed[namespace]
}

// joinVisibleTexts joins texts that each begin with the name of a namespace, without those about namespaces that the
// user may not see. It does not reveal how many it leaves out.
func (g *visibility) joinVisibleTexts(texts []string) string {
	seen, hidden := g.divideByVisibility(texts)
	switch {
	case !hidden:
		return forest.Few(seen)
	case len(seen) == 0:
		return "some that you may not see"
	}
	return forest.Few(seen) + " and others that you may not see"
}

// listWaiting returns the list with its noun and verb: "namespaces a, b wait".
func (g *visibility) listWaiting(names []string) string {
	seen, hidden := g.divideByVisibility(names)
	switch {
	case len(seen) == 0:
		return "namespaces that you may not see wait"
	case len(seen) == 1 && !hidden:
		return "namespace " + seen[0] + " waits"
	}
	return "namespaces " + g.joinVisibleTexts(names) + " wait"
}

// divideByVisibility returns the texts about namespaces that the user sees, and whether there are others (hidden).
func (g *visibility) divideByVisibility(texts []string) (seen []string, hidden bool) {
	for _, text := range slices.Sorted(slices.Values(texts)) {
		name, _, _ := strings.Cut(text, " ")
		if g.maySeeNamespace(name) {
			seen = append(seen, text)
		} else {
			hidden = true
		}
	}
	return seen, hidden
}

// checkWithinSight runs judge so that its last run names only namespaces that the request names itself (named) or that
// the user may get. Where the authorizer doesn't answer in time, other namespaces are not named, but the request isn't
// refused for that.
func checkWithinSight(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, named []string, judge func(*visibility)) {
	first := &visibility{named: named}
	judge(first)
	if len(first.wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	everywhere, err := ask.May(ctx, user, "get", "", "namespaces", []string{""})
	if err == nil && everywhere[0] {
		return
	}
	second := &visibility{named: named, allowed: map[string]bool{}}
	yes, err := ask.May(ctx, user, "get", "", "namespaces", first.wanted)
	if err != nil {
		log.FromContext(ctx).Error(err, "could not ask which of these namespaces the user may see; the answer to the request names none of them",
			"namespaces", len(first.wanted))
	}
	for i, name := range first.wanted {
		second.allowed[name] = err == nil && yes[i]
	}
	judge(second)
}
