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
	// mostSeen bounds for how many namespaces one request asks whether its user may see them.
	mostSeen = 50
	// sightTimeout keeps these questions well below the shortest timeout of a webhook: past it, nothing more is named.
	sightTimeout = time.Second
)

// sight says which namespaces an answer may name to the user of a request: those that the request names itself, and those that the
// user may get. Rules run under it twice: first it notes what they would name, then it shows what the authorizer allows.
type sight struct {
	named   []string
	wanted  []string
	allowed map[string]bool // nil while the rules run for the first time, and for who may get every namespace
}

// sees says whether the answer may name a namespace.
func (g *sight) sees(namespace string) bool {
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

// list joins texts that each begin with the name of a namespace, and leaves out those about namespaces that the user may not see;
// how many these are isn't told.
func (g *sight) list(texts []string) string {
	seen, hidden := g.divide(texts)
	switch {
	case !hidden:
		return forest.Few(seen)
	case len(seen) == 0:
		return "some that you may not see"
	}
	return forest.Few(seen) + " and others that you may not see"
}

// namespaces is list with its noun: "namespaces a, b".
func (g *sight) namespaces(names []string) string {
	if seen, _ := g.divide(names); len(seen) == 0 {
		return "namespaces that you may not see"
	}
	return "namespaces " + g.list(names)
}

// divide returns the texts about namespaces that the user sees, and whether there are others.
func (g *sight) divide(texts []string) (seen []string, hidden bool) {
	for _, text := range slices.Sorted(slices.Values(texts)) {
		name, _, _ := strings.Cut(text, " ")
		if g.sees(name) {
			seen = append(seen, text)
		} else {
			hidden = true
		}
	}
	return seen, hidden
}

// inSightOf has rules judge a request, so that they name to its user only namespaces that the request names itself (named) and that
// the user may get. Where the authorizer can't say it in time, they are not named: a message is not worth a refusal.
func inSightOf(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, named []string, judge func(*sight)) {
	first := &sight{named: named}
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
	second := &sight{named: named, allowed: map[string]bool{}}
	yes, err := ask.May(ctx, user, "get", "", "namespaces", first.wanted)
	if err != nil {
		log.FromContext(ctx).Error(err, "could not ask which namespaces the user may see; the answer names none", "namespaces", len(first.wanted))
	}
	for i, name := range first.wanted {
		second.allowed[name] = err == nil && yes[i]
	}
	judge(second)
}
