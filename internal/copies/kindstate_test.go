package copies_test

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestKindStates(t *testing.T) {
	for name, test := range map[string]struct {
		was  copies.KindState
		now  watchset.Status
		want copies.KindState
	}{
		"PROP-X5 a kind that is not listed for long is degraded": {copies.KindSyncing, watchset.Status{State: watchset.Degraded},
			copies.KindDegraded},
		"PROP-X5 a degraded kind is active once it is synced": {copies.KindDegraded, watchset.Status{State: watchset.Synced}, copies.KindActive},
		"a new try to list changes nothing before it has ended": {copies.KindForbidden, watchset.Status{State: watchset.Syncing},
			copies.KindForbidden},
		"what a watch has shown counts when it breaks": {copies.KindActive, watchset.Status{State: watchset.Degraded},
			copies.KindActive},
		"a kind that is served again is listed first": {copies.KindPending, watchset.Status{State: watchset.Syncing},
			copies.KindSyncing},
		"PROP-X12 a kind for which there is no room is degraded": {copies.KindSyncing, watchset.Status{State: watchset.Pending,
			Err: watchset.ErrLimit}, copies.KindDegraded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.was.After(test.now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
