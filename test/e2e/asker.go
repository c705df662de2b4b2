//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// asker sends one allowed request after the other until it is stopped, and remembers those that were refused.
type asker struct {
	stop    context.CancelFunc
	ended   sync.WaitGroup
	asked   int
	slowest time.Duration
	refused []error
}

// askingPause is the pause between two requests.
const askingPause = 100 * time.Millisecond

// startAsking starts an asker. Its requests depend on the webhooks, the policies and the rights of alice, mia and bob.
func (r *run) startAsking(ctx context.Context) *asker {
	ctx, stop := context.WithCancel(ctx)
	r.bobIsSudoer = r.readBySudo(ctx) == nil // not in the later scenes of the demo
	r.askers++
	a := &asker{stop: stop}
	a.ended.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			began := time.Now()
			err := r.ask(ctx, i)
			if ctx.Err() != nil {
				return
			}
			a.asked++
			a.slowest = max(a.slowest, time.Since(began))
			if err != nil {
				a.refused = append(a.refused, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(askingPause):
			}
		}
	})
	return a
}

// ask makes the next request.
func (r *run) ask(ctx context.Context, i int) error {
	alice, mia := r.world.As("alice"), r.world.As("mia")
	// An asker that is stopped may leave its last object behind, so the next asker uses other names.
	name := func(i int) string { return fmt.Sprintf("asked-%d-%d", r.askers, i) }
	switch i % 5 {
	case 0:
		return alice.Create(ctx, build.SubNamespace(tenant, name(i)), client.DryRunAll)
	case 1:
		return alice.Create(ctx, build.ConfigMap(tenant, name(i), "x"))
	case 2:
		return alice.Delete(ctx, build.ConfigMap(tenant, name(i-1), "x"))
	}
	if i%5 == 3 && r.bobIsSudoer {
		return r.readBySudo(ctx)
	}
	lns := &v1alpha1.LNamespace{}
	if err := mia.Get(ctx, client.ObjectKey{Name: tenant}, lns); err != nil {
		return err
	}
	lns.Spec.Users = append(lns.Spec.Users, build.Users("zoe")...)
	if err := mia.Update(ctx, lns, client.DryRunAll); !apierrors.IsConflict(err) { // the operator may have written its status meanwhile
		return err
	}
	return nil
}

func (r *run) readBySudo(ctx context.Context) error {
	return r.world.Sudo("bob", tenant).List(ctx, &corev1.SecretList{}, client.InNamespace(tenant))
}

// end stops the asker. It is an error if a request was refused.
func (a *asker) end() error {
	a.stop()
	a.ended.Wait()
	if len(a.refused) > 0 {
		return fmt.Errorf("%d of %d requests were refused, though nothing forbids them; the first: %w", len(a.refused), a.asked, a.refused[0])
	}
	return nil
}
