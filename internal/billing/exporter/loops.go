package exporter

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// loop is a part of the exporter that runs until its context ends. Only the leader runs it, unless it has a method NeedLeaderElection that
// returns false.
type loop interface {
	Start(ctx context.Context) error
}

func needsLeader(l loop) bool {
	standby, ok := l.(interface{ NeedLeaderElection() bool })
	return !ok || standby.NeedLeaderElection()
}

// runLoops runs the loops until ctx ends, those of the leader while this process leads. It closes elected when it leads. The first error
// ends all of them.
func runLoops(ctx context.Context, election *apiserver.Election, elected chan<- struct{}, loops []loop) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, l := range loops {
		if !needsLeader(l) {
			all.Go(func() error { return l.Start(ctx) })
		}
	}
	all.Go(func() error {
		return election.Lead(ctx, func(ctx context.Context) error {
			close(elected)
			leaders, ctx := errgroup.WithContext(ctx)
			for _, l := range loops {
				if needsLeader(l) {
					leaders.Go(func() error { return l.Start(ctx) })
				}
			}
			return leaders.Wait()
		})
	})
	return all.Wait()
}
