package access

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// switches brings the rules of each tenant to the form of impersonation that sudo.mode sets. A tenant whose rules hold
// the other form gets both. After the set form has been in place for a while, the tenant's rules lose the other one. So
// no request of a sudoer is refused meanwhile.
type switches struct {
	objects *objectStore
	view    View
	mode    v1alpha1.SudoMode
	// grace is how long the set form must be in place, because API servers see RBAC objects a little later.
	grace time.Duration

	mu    sync.Mutex           // guards since
	since map[string]time.Time // by tenant that holds both forms: since when the set form has been in place
}

func newSwitches(r *Reconciler) *switches {
	for _, mode := range []v1alpha1.SudoMode{r.Config.SudoMode, grants.OtherMode(r.Config.SudoMode)} {
		value := 0.0
		if mode == r.Config.SudoMode {
			value = 1
		}
		sudoMode.WithLabelValues(string(mode)).Set(value)
	}
	return &switches{objects: r.objects, view: r.View, mode: r.Config.SudoMode, grace: r.Timing.SwitchGrace, since: map[string]time.Time{}}
}

func (s *switches) dropTenant(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, tenant)
}

// chooseForms sets in facts the forms that the tenant's rules are to hold, and the mode that its status shows. actual
// are the objects that exist. It reports whether a rule of the tenant holds the form that isn't set.
func (s *switches) chooseForms(ctx context.Context, tenant *v1alpha1.LNamespace, facts *grants.Facts,
	actual grants.Actual) (switching bool, err error) {
	if facts.SelfForms, err = s.readSharedForms(ctx, tenant.Name, actual); err != nil {
		return false, err
	}
	set := grants.FormsOf(s.mode)
	facts.Mode, facts.Forms = s.mode, set.Or(actual.SudoForms(tenant.Name))
	if facts.Forms == set {
		s.dropTenant(tenant.Name)
		return len(facts.SelfForms) > 0, nil
	}
	missing := s.checkInPlace(ctx, tenant, grants.For(tenant, *facts), actual)
	if s.isLongInPlace(tenant.Name, missing == "") {
		facts.Forms = set
		return true, nil
	}
	// The status keeps the old mode until the set form holds in the whole tree.
	facts.Mode = grants.OtherMode(s.mode)
	if missing != "" {
		ctrl.LoggerFrom(ctx).V(1).Info("the rules of sudo hold both forms of impersonation", "waitsFor", missing)
	}
	return true, nil
}

// readSharedForms returns the users whose self pairs hold the form that isn't set. With each user are the forms that
// other owners of the pair still need.
func (s *switches) readSharedForms(ctx context.Context, tenant string, actual grants.Actual) (map[string]grants.Forms, error) {
	set := grants.FormsOf(s.mode)
	shared := map[string]grants.Forms{}
	for user, role := range actual.SelfRoles() {
		if grants.WrittenForms(role).Or(set) == set {
			continue
		}
		shared[user] = grants.Forms{}
		for _, owner := range grants.Owners(role) {
			// A marked owner has given the pair up, so the pair needs no form for it.
			if owner.Name == tenant || owner.UID == grants.Marked {
				continue
			}
			other, err := s.objects.readCached(ctx, sudoRoleOf(owner.Name))
			if err != nil {
				return nil, err
			}
			if other != nil {
				shared[user] = shared[user].Or(grants.WrittenForms(other))
			}
			if shared[user].Or(set) != set {
				break
			}
		}
	}
	return shared, nil
}

func sudoRoleOf(tenant string) grants.Key {
	return grants.KeyOf(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: grants.SudoName(tenant)}})
}

// isLongInPlace records whether the set form is in place for the tenant, and reports whether it has been for the time
// of grace.
func (s *switches) isLongInPlace(tenant string, inPlace bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.since[tenant]
	switch {
	case !inPlace:
		delete(s.since, tenant)
	case !known:
		s.since[tenant] = time.Now()
	}
	return inPlace && known && time.Since(since) >= s.grace
}

// isInPlace reports whether the last call of chooseForms found the set form in place for a tenant that holds both.
func (s *switches) isInPlace(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since[tenant].IsZero()
}

// checkInPlace names the first object that sudoers of the tenant still need for the set form. It returns "" if there is
// none. An object that grants no sudo yet isn't missing. wanted are the tenant's objects with both forms.
func (s *switches) checkInPlace(ctx context.Context, tenant *v1alpha1.LNamespace, wanted grants.Objects, actual grants.Actual) string {
	if !tenant.DeletionTimestamp.IsZero() || !s.view.Owns(tenant.Name, tenant.UID) {
		return "Namespace " + tenant.Name
	}
	set, granted := grants.FormsOf(s.mode), false
	for _, pair := range wanted.SudoPairs() {
		role, binding := actual[grants.KeyOf(pair.Role)], actual[grants.KeyOf(pair.Binding)]
		// A pair that grants nothing yet breaks no request.
		if role == nil || binding == nil || len(grants.Subjects(binding)) == 0 || !grants.IsOurs(binding) {
			continue
		}
		granted = true
		if forms := grants.WrittenForms(role); forms.Or(set) != forms {
			return "the rules of " + grants.KeyOf(pair.Role).String()
		}
	}
	if !granted || s.mode != v1alpha1.SudoConstrained {
		return ""
	}
	return s.checkBindings(ctx, tenant.Name, wanted.SudoOn, actual)
}

// checkBindings names the first RoleBinding of the tree that lacks the RoleBinding without which the constrained form
// isn't allowed there. The copies of wanted below the root are in no cache. Namespaces that are terminating or halted
// get none.
func (s *switches) checkBindings(ctx context.Context, tenant string, wanted grants.Object, actual grants.Actual) string {
	for _, namespace := range s.view.Living(tenant) {
		key := grants.Key{Kind: grants.KeyOf(wanted).Kind, Namespace: namespace, Name: wanted.GetName()}
		existing := actual[key]
		if namespace != tenant {
			if !s.view.InTree(namespace, tenant) {
				continue
			}
			var err error
			if existing, err = s.objects.readLive(ctx, key); err != nil {
				return err.Error()
			}
		}
		if existing == nil || !grants.SameSubjects(existing, wanted) || grants.MustRecreate(existing, wanted) {
			return key.String()
		}
	}
	return ""
}
