package rights

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

type owner = metav1.OwnerReference

func compare(a, b string) int { return cmp.Compare(a, b) }

// history is one run of tenants whose lists change, and of an operator that follows.
type history struct {
	random  *rand.Rand
	server  *server
	tenants map[string][]*v1alpha1.LNamespace // the versions of each, nil where there was none
	passes  map[string]*pass                  // at most one for each tenant, as in a work queue
	faulty  bool
	rows    func(string)
}

// pass is one pass of the operator over a tenant, as far as it has come.
type pass struct {
	tenant *v1alpha1.LNamespace
	since  int // the version of the tenant that the pass has read
	// actual has the objects as the pass knows them. At its beginning they may be some changes old.
	actual grants.Actual
	// excess has, by object, the rights that actual had at the beginning and that the tenant's lists do not name. A step that is carried
	// out removes the entry of its object.
	excess  map[grants.Key]map[right]bool
	steps   []grants.Step
	unsound map[grants.Key]bool // objects whose step has failed
	failed  bool                // a step that takes rights away has failed
	all     bool                // every step so far was carried out
}

var (
	tenantNames = []string{"acme", "zeta"}
	facts       = grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.FormsOf(v1alpha1.SudoLegacy), UserClusterRole: "admin"}
)

// runGrants runs the history of a seed, and returns what is wrong; nil if nothing is.
func runGrants(seed uint64, rows func(string)) (wrong *Failure) {
	h := &history{
		random: rand.New(rand.NewPCG(seed, 1)), server: newServer(), faulty: true, rows: rows,
		tenants: map[string][]*v1alpha1.LNamespace{}, passes: map[string]*pass{},
	}
	defer func() {
		if r := recover(); r != nil {
			failed, is := r.(*Failure)
			if !is {
				panic(fmt.Sprintf("seed %d: %v", seed, r))
			}
			wrong = failed
		}
	}()
	for _, name := range tenantNames {
		h.tenants[name] = []*v1alpha1.LNamespace{nil}
	}
	for range 20 + h.random.IntN(150) {
		h.happen()
	}
	h.settle()
	return nil
}

func (h *history) record(format string, args ...any) {
	if h.rows != nil {
		h.rows(fmt.Sprintf(format, args...))
	}
}

func (h *history) happen() {
	name := tenantNames[h.random.IntN(len(tenantNames))]
	switch n := h.random.IntN(100); {
	case n < 12:
		h.edit(name)
	case n < 15:
		h.drift()
	case n < 17:
		h.putStranger(name)
	case n < 20:
		h.server.collect(h.exists)
	case n < 23 && h.passes[name] != nil: // the process ends
		h.record("%s: the process ends", name)
		delete(h.passes, name)
	case h.passes[name] == nil:
		h.begin(name, h.random.IntN(4)*h.random.IntN(3), h.random.IntN(2)*h.random.IntN(3))
	default:
		h.goOn(name)
	}
}

// newest returns the tenant as it is now, nil if there is none.
func (h *history) newest(name string) *v1alpha1.LNamespace {
	all := h.tenants[name]
	return all[len(all)-1]
}

func (h *history) exists(uid types.UID) bool {
	return slices.ContainsFunc(tenantNames, func(name string) bool { t := h.newest(name); return t != nil && t.UID == uid })
}

// edit makes, changes or deletes a tenant.
func (h *history) edit(name string) {
	now, next := h.newest(name), &v1alpha1.LNamespace{}
	switch {
	case now != nil && now.DeletionTimestamp != nil:
		return
	case now != nil && h.random.IntN(6) == 0:
		next = now.DeepCopy()
		next.DeletionTimestamp = &metav1.Time{}
	default:
		next.Name, next.UID = name, types.UID(fmt.Sprint(name, "-", len(h.tenants[name])))
		if now != nil {
			next.UID = now.UID
		}
		next.Spec.Users, next.Spec.Managers, next.Spec.Sudoers = h.people(), h.people(), h.people()
		if h.random.IntN(3) == 0 { // the only manager is the only sudoer, and gets a pair for both lists
			next.Spec.Managers = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "ann"}}
			next.Spec.Sudoers = slices.Clone(next.Spec.Managers)
		}
	}
	h.tenants[name] = append(h.tenants[name], next)
	h.record("%s: users %v, managers %v, sudoers %v, deleted %t", name,
		next.Spec.Users, next.Spec.Managers, next.Spec.Sudoers, next.DeletionTimestamp != nil)
}

func (h *history) people() (some []v1alpha1.Subject) {
	for _, one := range []v1alpha1.Subject{
		{Kind: v1alpha1.SubjectUser, Name: "ann"}, {Kind: v1alpha1.SubjectUser, Name: "bob"}, {Kind: v1alpha1.SubjectGroup, Name: "ops"},
		{Kind: v1alpha1.SubjectServiceAccount, Namespace: "ci", Name: "deployer"},
	} {
		if h.random.IntN(3) == 0 {
			some = append(some, one)
		}
	}
	return some
}

// drift changes an access object as a stranger does: they add themselves, or take the labels off.
func (h *history) drift() {
	keys := h.server.keys()
	if len(keys) == 0 {
		return
	}
	key := keys[h.random.IntN(len(keys))]
	object := h.server.objects[key].DeepCopyObject().(grants.Object)
	switch binding, is := object.(*rbacv1.ClusterRoleBinding); {
	case is:
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"})
	default:
		object.SetLabels(map[string]string{"team": "x"})
	}
	h.server.put(key, object)
	h.record("somebody changes %s", key)
}

// putStranger makes an object that has the name of one of the operator's.
func (h *history) putStranger(name string) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: grants.SudoName(name)}}
	if key := grants.KeyOf(role); h.server.objects[key] == nil {
		h.server.put(key, role)
		h.record("somebody makes %s", key)
	}
}

// begin begins a pass over a tenant. It rests on the tenant as it was tenantAge versions ago, and on the objects as they were viewAge
// changes ago.
func (h *history) begin(name string, viewAge, tenantAge int) {
	versions := h.tenants[name]
	since := max(0, len(versions)-1-tenantAge)
	tenant := versions[since]
	if tenant == nil {
		return
	}
	objects, view := grants.For(tenant, facts), h.server.view(viewAge)
	actual := grants.Actual{}
	for _, key := range objects.Keys() {
		actual.Put(key, view[key])
	}
	for key, object := range view {
		_, isSelf := grants.SelfUser(key.Name)
		_, isSole := grants.SoleUser(key.Name, name)
		if isOwner := slices.ContainsFunc(grants.Owners(object), func(o owner) bool { return o.Name == name }); (isSelf || isSole) && isOwner {
			actual.Put(key, object)
		}
	}
	plan := grants.PlanFor(name, objects, grants.Withheld{Everything: tenant.DeletionTimestamp != nil}, actual)
	h.passes[name] = &pass{
		tenant: tenant, since: since, actual: actual, excess: excessIn(actual, tenant),
		steps: plan.Steps, unsound: map[grants.Key]bool{}, all: true,
	}
	h.record("%s: a pass begins with %d steps, by a tenant %d and objects %d changes old", name, len(plan.Steps), tenantAge, viewAge)
}

// goOn carries out the next step of a pass, or ends the pass.
func (h *history) goOn(name string) {
	p := h.passes[name]
	if len(p.steps) == 0 {
		h.finish(name, p)
		return
	}
	step := p.steps[0]
	p.steps = p.steps[1:]
	if !step.Revokes && p.failed || p.unsound[step.Needs] {
		p.all = false
		return
	}
	if step.Verb == grants.VerbEnsure && h.isLeaving(p.tenant) {
		p.all = false // the deletion of the LNamespace has begun since the pass began
		return
	}
	key := grants.KeyOf(step.Desired)
	if h.carryOut(p, key, step) {
		delete(p.excess, key) // what somebody adds from now on, the next pass revokes
		return
	}
	p.unsound[key], p.all = true, false
	p.failed = p.failed || step.Revokes
}

// isLeaving reports whether the LNamespace of this UID is being deleted, or gone.
func (h *history) isLeaving(tenant *v1alpha1.LNamespace) bool {
	return slices.ContainsFunc(h.tenants[tenant.Name], func(t *v1alpha1.LNamespace) bool {
		return t != nil && t.UID == tenant.UID && t.DeletionTimestamp != nil
	})
}

// carryOut carries out a step. If the object was changed meanwhile, it looks at the object and tries again. It reports whether the step is
// done.
func (h *history) carryOut(p *pass, key grants.Key, step grants.Step) bool {
	for range 6 {
		if step.Role != nil { // it is read from the API server just before
			p.actual.Put(grants.KeyOf(step.Role), h.server.objects[grants.KeyOf(step.Role)])
		}
		next := grants.NextWrite(p.tenant.Name, step, p.actual)
		switch next.Verb {
		case grants.WriteNothing:
			return true
		case grants.WriteConflict:
			return false
		}
		after, err := h.send(p, step, next)
		switch {
		case errors.Is(err, errStale):
			p.actual.Put(key, h.server.objects[key])
			continue
		case err != nil:
			return false
		}
		p.actual.Put(key, after)
		if !next.Unfinished {
			return true
		}
	}
	return false
}

// send sends a request, which may fail, and checks what it has changed.
func (h *history) send(p *pass, step grants.Step, next grants.Write) (grants.Object, error) {
	n := h.random.IntN(12)
	if h.faulty && n == 0 {
		return nil, errRefused
	}
	before, key := h.server.objects, grants.KeyOf(step.Desired)
	after, err := h.server.carryOut(key, next)
	h.record("%s: %s %s: %v", p.tenant.Name, next.Verb, key, err)
	h.check(p, step, before)
	if err == nil && h.faulty && n == 1 {
		return nil, errLost
	}
	return after, err
}

// finish ends a pass. A tenant that is being deleted is gone when the pass has carried out every step.
func (h *history) finish(name string, p *pass) {
	delete(h.passes, name)
	now := h.newest(name)
	if now == nil || now.UID != p.tenant.UID || p.tenant.DeletionTimestamp == nil || !p.all {
		return
	}
	h.tenants[name] = append(h.tenants[name], nil)
	h.record("%s is gone", name)
}
