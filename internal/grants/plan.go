package grants

import (
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Verb is what a step does to one object.
type Verb string

// The verbs of a Step.
const (
	// VerbNarrow takes from a binding the subjects that the desired one doesn't have.
	VerbNarrow Verb = "narrow"
	// VerbRemove deletes an object.
	VerbRemove Verb = "remove"
	// VerbRelease gives up this tenant's ownership of a shared object.
	VerbRelease Verb = "release"
	// VerbEnsure makes an object as desired.
	VerbEnsure Verb = "ensure"
)

// Step is one verb on one object. The existing object is looked up when the step is carried out, because an earlier
// step may have written it.
type Step struct {
	Verb    Verb
	Desired Object
	// Needs is the ClusterRole that must be as desired before this binding to it is written; the zero Key for none.
	Needs Key
	// Role is the desired ClusterRole of a binding that is removed because it refers to a role that the operator
	// doesn't manage; otherwise nil. The role must be read again just before the removal. If the reason no longer
	// holds, the binding is only narrowed.
	Role Object
	// Last reports that a shared object that nobody else owns is deleted rather than marked.
	Last bool
	// Revokes reports that the step takes a right away. If such a step fails, other than by a conflict or a busy
	// object, nothing is granted.
	Revokes bool
	// Moves reports that the step is one of those that move rights from one pair to another: nobody gains or loses any.
	Moves bool
}

// Plan brings a tenant's existing objects to the desired ones: first all steps that take a right away, then roles
// before their bindings. It is empty where nothing is to be done.
type Plan struct {
	Steps     []Step
	Conflicts []Key // the keys under which someone else's objects exist
}

// Withheld describes what of a tenant's access is not granted at present. For Everything, Sudo and
// Users, existing objects that grant it are deleted.
type Withheld struct {
	Everything bool
	Sudo       bool // the pair that lets sudoers become their group, and SudoOn
	Users      bool // the users' RoleBinding
	// SudoAdditions: the sudo pair gets no new subjects, and loses those that left the list. Additions: the same
	// applies to every object.
	SudoAdditions, Additions bool
	// Bindings: RoleBindings in the root that don't exist yet are created later, when the objects that limit their
	// subjects are there.
	Bindings bool
}

// Actual holds the existing objects, by key.
type Actual map[Key]Object

// Put records the object that exists under the key, nil for none.
func (a Actual) Put(key Key, object Object) {
	if object == nil {
		delete(a, key)
		return
	}
	a[key] = object
}

// Judge returns the verdict on the object that exists under the key of desired; Drift where there is none.
func (a Actual) Judge(desired Object) Verdict {
	existing, ok := a[KeyOf(desired)]
	if !ok {
		return Drift
	}
	return Judge(existing, desired)
}

// PlanFor returns the plan for one tenant. actual must hold each existing object of the operator's that has one of the
// keys of objects. It must also hold each Pair that the tenant owns and that SelfName or SoleName names. An object of
// another user is a conflict if actual holds it.
func PlanFor(tenant string, objects Objects, withheld Withheld, actual Actual) Plan {
	p := planner{tenant: tenant, objects: objects, withheld: withheld, actual: actual, planned: map[Key]bool{}}
	if withheld.Everything {
		p.planWithdrawal()
		return p.plan
	}
	p.planRevocation()
	p.releaseSelfPairs(p.objects.Self)
	if !withheld.Additions {
		p.planGrants()
		p.planSuperseded()
	}
	return p.plan
}

type planner struct {
	tenant   string
	objects  Objects
	withheld Withheld
	actual   Actual
	plan     Plan
	planned  map[Key]bool // ensured by an earlier step
}

func (p *planner) addSteps(steps ...Step) { p.plan.Steps = append(p.plan.Steps, steps...) }

// planRevocation plans the steps that take rights away. They come before all other steps, so that a subject that left a
// list loses its right first.
func (p *planner) planRevocation() {
	p.revokeSole()
	p.revokeFrom(p.objects.Sudo.Binding, p.objects.Sudo.Role, p.withheld.Sudo || p.objects.Sudo.bindsNobody())
	p.revokeFrom(p.objects.SudoOn, nil, p.withheld.Sudo || !p.objects.Forms.Constrained)
	p.revokeFrom(p.objects.Users, nil, p.withheld.Users)
	p.revokeFrom(p.objects.Edit.Binding, p.objects.Edit.Role, p.objects.Edit.bindsNobody())
	p.revokeFrom(p.objects.Sudoers, nil, false)
	for _, binding := range p.objects.Requests {
		p.revokeFrom(binding, nil, len(binding.Subjects) == 0)
	}
	for _, pair := range p.objects.Self {
		p.revokeFrom(pair.Binding, pair.Role, false)
	}
	if p.withheld.Sudo {
		p.planRemoval(p.objects.Sudo.Role, nil)
	}
	for i := range p.plan.Steps {
		p.plan.Steps[i].Revokes = true
	}
}

// revokeFrom plans the steps that take rights from one binding. role is nil where the operator doesn't write it.
func (p *planner) revokeFrom(binding, role Object, withheld bool) {
	existing, ok := p.actual[KeyOf(binding)]
	if !ok {
		return
	}
	roleVerdict := Equal
	if role != nil {
		roleVerdict = p.actual.Judge(role)
	}
	switch {
	case withheld:
		p.planRemoval(binding, nil)
		return
	// A role that the operator doesn't manage may grant anything, so nobody stays bound to it.
	case roleVerdict == Conflict:
		p.planRemoval(binding, role)
		return
	}
	_, narrower := Narrow(existing, binding)
	recreate := MustRecreate(existing, binding)
	if p.actual.Judge(binding) != Drift || (!narrower && !recreate) {
		return
	}
	switch {
	// Where additions are allowed, one update removes the old subjects and adds the new ones.
	case roleVerdict == Equal && !p.isFrozen(binding):
		p.planObject(binding, nil)
	case recreate:
		p.planRemoval(binding, role)
	default:
		p.addSteps(Step{Verb: VerbNarrow, Desired: binding})
	}
}

// isFrozen reports whether an object may lose rights, but get none.
func (p *planner) isFrozen(binding Object) bool {
	grantsSudo := binding.GetName() == SudoOnBinding || LetsSudo(binding.GetName(), p.tenant)
	return p.withheld.Additions || (p.withheld.SudoAdditions && grantsSudo)
}

func (p *planner) planGrants() {
	if !p.withheld.Bindings {
		p.grantInRoot()
	}
	for _, pair := range p.wantedPairs() {
		p.planObject(pair.Role, nil)
		if p.actual.Judge(pair.Role) != Conflict && !pair.bindsNobody() {
			p.planObject(pair.Binding, pair.Role)
		}
	}
	if p.objects.Sole != nil && p.actual[KeyOf(p.objects.Sudo.Binding)] != nil && p.actual[KeyOf(p.objects.Edit.Binding)] != nil {
		p.markMoves()
	}
}

// wantedPairs returns the pairs that grant what the lists ask for, except for what is withheld.
func (p *planner) wantedPairs() []Pair {
	sudo := !p.withheld.Sudo && !p.withheld.SudoAdditions
	switch {
	case p.objects.Sole != nil && sudo:
		return []Pair{*p.objects.Sole}
	case p.objects.Sole != nil && p.actual[KeyOf(p.objects.Sole.Binding)] != nil && !p.withheld.Sudo:
		return nil // the pair stays as it is until additions are allowed
	case p.objects.Sole != nil:
		return []Pair{p.objects.Edit} // the sole pair will take its place
	case sudo:
		return p.objects.separatePairs()
	}
	return p.objects.separatePairs()[1:]
}

// grantInRoot plans the RoleBindings in the root, from which propagation copies them to the tree.
func (p *planner) grantInRoot() {
	p.planObject(p.objects.Sudoers, nil) // first, so that no user can take its name
	if !p.withheld.Users {
		p.planObject(p.objects.Users, nil)
	}
	if p.objects.Forms.Constrained && !p.withheld.Sudo && !p.withheld.SudoAdditions {
		p.planObject(p.objects.SudoOn, nil)
	}
	for _, binding := range p.objects.Requests {
		if p.objects.GrantsRequests && len(binding.Subjects) > 0 {
			p.planObject(binding, nil)
		}
	}
}

// planObject plans to make object as desired, once. It plans nothing if the object is so already, and records a
// conflict if it is someone else's.
func (p *planner) planObject(object, role Object) {
	key := KeyOf(object)
	if p.planned[key] {
		return
	}
	switch p.actual.Judge(object) {
	case Conflict:
		p.plan.Conflicts = append(p.plan.Conflicts, key)
	case Drift:
		p.planned[key] = true
		step := Step{Verb: VerbEnsure, Desired: object}
		if role != nil {
			step.Needs = KeyOf(role)
		}
		p.addSteps(step)
	}
}

// planRemoval plans to delete an object if it may be deleted. role is the Step's Role.
func (p *planner) planRemoval(object, role Object) {
	if existing, ok := p.actual[KeyOf(object)]; ok && Removable(existing, object) {
		p.addSteps(Step{Verb: VerbRemove, Desired: object, Role: role})
	}
}

// releaseSelfPairs plans to release all self pairs that the tenant owns, except for the kept ones.
func (p *planner) releaseSelfPairs(kept []Pair) {
	for _, existing := range p.findExisting(selfPrefix) {
		isKept := slices.ContainsFunc(kept, func(pair Pair) bool { return pair.Role.Name == existing.GetName() })
		expected, ok := Expected(existing)
		if isKept || !ok || !Removable(existing, expected) {
			continue
		}
		leaving := p.withheld.Everything
		if _, owned := Release(existing, p.tenant); owned || (leaving && ownsMarked(existing, p.tenant)) {
			p.addSteps(Step{Verb: VerbRelease, Desired: expected, Last: leaving})
		}
	}
}

// findExisting returns the existing objects whose names begin with prefix, in the order of their names, a role before
// its binding.
func (p *planner) findExisting(prefix string) []Object {
	var objects []Object
	for _, key := range slices.SortedFunc(maps.Keys(p.actual), compareKeys) {
		if strings.HasPrefix(key.Name, prefix) {
			objects = append(objects, p.actual[key])
		}
	}
	return objects
}

// revokeSole plans to delete the sole pairs of users who are no longer on both lists, managers and sudoers; all sole
// pairs if sudo is withheld. The binding is deleted first. A user who is still on one list gets that right by another
// pair. A user who is on both lists keeps the sole pair until the separate pairs are in place.
func (p *planner) revokeSole() {
	if p.objects.Sole != nil && !p.withheld.Sudo {
		p.revokeFrom(p.objects.Sole.Binding, p.objects.Sole.Role, false)
	}
	for _, existing := range slices.Backward(p.findExisting(solePrefix)) {
		user, _ := SoleUser(existing.GetName(), p.tenant)
		subject := boundSubjects([]v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: user}})[0]
		has := slices.Contains(p.objects.Edit.Binding.Subjects, subject) && slices.Contains(p.objects.Sudo.Binding.Subjects, subject)
		switch {
		case p.withheld.Sudo || !has:
			p.removeAsExpected(existing)
		case p.objects.Sole == nil:
			p.narrowAsExpected(existing)
		}
	}
}

// narrowAsExpected plans to remove from a sole pair all subjects but its user. The pair stays for a while, and a
// conflict of another object may keep it for long.
func (p *planner) narrowAsExpected(existing Object) {
	if expected, ok := Expected(existing); ok {
		if _, narrower := Narrow(existing, expected); narrower {
			p.addSteps(Step{Verb: VerbNarrow, Desired: expected})
		}
	}
}

// planSuperseded plans to delete the pairs whose rights other pairs grant, when those other pairs are in place. So no
// right is interrupted when a tenant changes from separate pairs to a sole one, or back.
func (p *planner) planSuperseded() {
	// Only when nothing else is left to do are the other pairs certain to be in place.
	if len(p.plan.Steps) > 0 || len(p.plan.Conflicts) > 0 || p.withheld.Sudo || p.withheld.SudoAdditions {
		return
	}
	if p.objects.Sole == nil {
		for _, existing := range slices.Backward(p.findExisting(solePrefix)) {
			p.removeAsExpected(existing)
		}
	} else {
		for _, pair := range []Pair{p.objects.Sudo, p.objects.Edit} {
			p.planRemoval(pair.Binding, nil)
			p.planRemoval(pair.Role, nil)
		}
		p.releaseSelfPairs(nil)
	}
	p.markMoves()
}

// markMoves sets Moves on all steps on objects in cluster scope that don't revoke rights.
func (p *planner) markMoves() {
	for i, step := range p.plan.Steps {
		p.plan.Steps[i].Moves = step.Desired.GetNamespace() == "" && !step.Revokes
	}
}

func (p *planner) removeAsExpected(existing Object) {
	if expected, ok := Expected(existing); ok {
		p.planRemoval(expected, nil)
	}
}

// ownsMarked reports whether the tenant marked its reference earlier and nobody else owns the object. A tenant that is
// being deleted deletes such an object itself, without waiting for the garbage collector.
func ownsMarked(existing Object, tenant string) bool {
	for _, owner := range Owners(existing) {
		if owner.Name == tenant && owner.UID == Marked {
			return LastOwner(existing, tenant)
		}
	}
	return false
}

// planWithdrawal plans to take all rights back. An update first takes all subjects from the sudo binding: that one
// write ends sudo, even if later steps fail. The edit pair is deleted last, so that managers can edit their LNamespace
// as long as possible.
func (p *planner) planWithdrawal() {
	sudo := p.objects.Sudo.Binding
	if existing, ok := p.actual[KeyOf(sudo)]; ok && len(Subjects(existing)) > 0 && Removable(existing, sudo) {
		p.addSteps(Step{Verb: VerbNarrow, Desired: Without(sudo)})
	}
	for _, existing := range slices.Backward(p.findExisting(solePrefix)) {
		p.removeAsExpected(existing)
	}
	p.releaseSelfPairs(nil)
	for _, object := range []Object{
		p.objects.SudoOn, p.objects.Users, p.objects.Sudoers,
		sudo, p.objects.Sudo.Role,
		p.objects.Edit.Binding, p.objects.Edit.Role,
	} {
		p.planRemoval(object, nil)
	}
}
