package fault_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// rights asks the API server's authorizer all the while what a scene's people may do (FLT-I2).
type rights struct {
	mu      sync.Mutex     // guards what follows
	revoked map[right]bool // rights that were revoked, and whether they have been refused since
	asked   int
	wrong   []string
}

// right is what a user holds in the scene's tenant.
type right struct{ user, as string }

// roles are the lists of an LNamespace that give rights.
var roles = []string{"sudoer", "user", "manager"}

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
func (r *rights) revoke(user string) { r.revokeAs("sudoer", user) }

// revokeAs is the method revoke for another role.
func (r *rights) revokeAs(role, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked == nil {
		r.revoked = map[right]bool{}
	}
	r.revoked[right{user: user, as: role}] = false
}

func (r *rights) ask(ctx context.Context, s *scene) {
	r.asked++ // of carol, one role in turn
	if of := (right{user: s.own("carol"), as: roles[r.asked%len(roles)]}); s.isHeld(ctx, of) {
		r.blame(fmt.Sprintf("%+v is held, and nobody granted it", of))
	}
	r.mu.Lock()
	revoked := maps.Clone(r.revoked)
	r.mu.Unlock()
	for of, refused := range revoked {
		allowed, err := s.holds(ctx, of)
		switch {
		case err != nil:
		case allowed && refused:
			r.blame(fmt.Sprintf("%+v is held again", of))
		case !allowed:
			r.mu.Lock()
			r.revoked[of] = true
			r.mu.Unlock()
		}
	}
}

func (r *rights) blame(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, line)
}

// broken is what was wrong, and which rights that were revoked are still held.
func (r *rights) broken(ctx context.Context, s *scene) []string {
	r.mu.Lock()
	revoked := maps.Clone(r.revoked)
	r.mu.Unlock()
	for of := range revoked {
		if allowed, err := s.holds(ctx, of); err != nil || allowed {
			r.blame(fmt.Sprintf("%+v is held at the end: %t, %v", of, allowed, err))
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

// holds asks for one right of those that a role gives in the scene's tenant.
func (s *scene) holds(ctx context.Context, of right) (bool, error) {
	payments := s.own("payments")
	switch of.as {
	case "user":
		return s.may(ctx, of.user, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: payments})
	case "manager":
		return s.may(ctx, of.user,
			authorizationv1.ResourceAttributes{Verb: "update", Group: v1alpha1.Domain, Resource: "lnamespaces", Name: payments})
	}
	return s.maySudo(ctx, of.user)
}

func (s *scene) isHeld(ctx context.Context, of right) bool {
	held, err := s.holds(ctx, of)
	return err == nil && held
}

// gains waits until a user has sudo.
func (s *scene) gains(ctx context.Context, user string) {
	Eventually(ctx, s.maySudo).WithArguments(user).Should(BeTrue(), s.explain)
}

// loses waits until a user's sudo is refused.
func (s *scene) loses(ctx context.Context, user string) {
	Eventually(ctx, s.maySudo).WithArguments(user).Should(BeFalse(), s.explain)
}
