package fault_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// rights asks the API server's authorizer all the while what a scene's people may do (FLT-I2).
type rights struct {
	mu      sync.Mutex      // guards what follows
	revoked map[string]bool // users who lost sudo, and whether they have been refused since
	wrong   []string
}

// askEvery is the pause between two questions of one scene. There are many scenes.
const askEvery = 100 * time.Millisecond

// begin asks until the returned function is called.
func (r *rights) begin(s *scene) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			r.ask(ctx, s)
			select {
			case <-ctx.Done():
			case <-time.After(askEvery):
			}
		}
	})
	return func() {
		cancel()
		asking.Wait()
	}
}

// revoke records that a user's sudo was revoked: once the API server has refused it, it must never be granted again.
func (r *rights) revoke(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked == nil {
		r.revoked = map[string]bool{}
	}
	r.revoked[user] = false
}

func (r *rights) ask(ctx context.Context, s *scene) {
	if allowed, err := s.maySudo(ctx, s.own("carol")); err == nil && allowed {
		r.blame(s.own("carol") + " holds sudo, and nobody granted it")
	}
	r.mu.Lock()
	revoked := maps.Clone(r.revoked)
	r.mu.Unlock()
	for user, refused := range revoked {
		allowed, err := s.maySudo(ctx, user)
		switch {
		case err != nil:
		case allowed && refused:
			r.blame(user + " holds sudo again")
		case !allowed:
			r.mu.Lock()
			r.revoked[user] = true
			r.mu.Unlock()
		}
	}
}

func (r *rights) blame(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, line)
}

// broken is what was wrong, and which users still have the sudo that was revoked.
func (r *rights) broken(ctx context.Context, s *scene) []string {
	r.mu.Lock()
	users := maps.Clone(r.revoked)
	r.mu.Unlock()
	for user := range users {
		if allowed, err := s.maySudo(ctx, user); err != nil || allowed {
			r.blame(fmt.Sprintf("%s holds sudo at the end: %t, %v", user, allowed, err))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}

// may asks the API server's authorizer whether a user may do something.
func (s *scene) may(ctx context.Context, user string, does authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &does}}
	err := s.Admin().Create(ctx, review)
	return review.Status.Allowed, err
}

// maySudo asks whether a user may act as the group of the scene's sudoers.
func (s *scene) maySudo(ctx context.Context, user string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups", Name: s.own("payments") + "-sudoers"})
}

// gains waits until a user has sudo.
func (s *scene) gains(ctx context.Context, user string) {
	Eventually(ctx, s.maySudo).WithArguments(user).Should(BeTrue(), s.explain)
}

// loses waits until a user's sudo is refused.
func (s *scene) loses(ctx context.Context, user string) {
	Eventually(ctx, s.maySudo).WithArguments(user).Should(BeFalse(), s.explain)
}
