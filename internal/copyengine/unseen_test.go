package copyengine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestDegradedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		now  watchset.Status
		want string
	}{
		"PROP-X12 readyz describes a kind without room for its watch " +
			"as Degraded, and names the limits": {watchset.Status{State: watchset.Pending, Err: watchset.ErrLimit},
			`kind Secret of group "" is Degraded: it is not watched, because informers.maxInformers or informers.maxNamespaces is reached`},
		"PROP-X5 readyz describes a kind whose list fails as " +
			"Degraded, and for how long": {watchset.Status{State: watchset.Degraded, Err: errors.New("the converter is down")},
			`kind Secret of group "" is Degraded: the API server has not listed it for at least `},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, acme(), copyengine.Kind{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: copyengine.Cluster})
			s.apply(copyengine.WatchChanged{Watch: copyengine.Watch{Kind: secret, Role: copyengine.SourcesAlone}, Status: c.now})
			if got := s.state.DescribeBlind(); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("got %q, want one sentence that begins with %q", got, c.want)
			}
		})
	}
}
