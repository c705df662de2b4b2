package distribute

import (
	"fmt"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func distribution(t testing.TB, conflict v1alpha1.ConflictPolicy, drift v1alpha1.DriftPolicy,
	deletion v1alpha1.DeletionPolicy) *Distribution {
	t.Helper()
	template, err := ReadTemplate([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"regcred"},"data":{"k":"dg=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &Distribution{Name: "regcred", UID: "uid", Template: template, Conflict: conflict, Drift: drift, Deletion: deletion}
}

func TestPlan(t *testing.T) {
	const open, shut = true, false
	ours := func(d *Distribution, change func(*Copy)) *Copy {
		c := &Copy{By: "regcred", Ours: true, Content: d.Template.Content, Known: true, Locked: d.Drift == v1alpha1.DriftRevert}
		if d.Deletion == v1alpha1.DeletionDelete {
			c.Owner = d.UID
		}
		if change != nil {
			change(c)
		}
		return c
	}
	revert, orphan := v1alpha1.DriftRevert, v1alpha1.DeletionOrphan
	for name, c := range map[string]struct {
		conflict v1alpha1.ConflictPolicy
		drift    v1alpha1.DriftPolicy
		deletion v1alpha1.DeletionPolicy
		choice   Choice
		copy     func(*Distribution) *Copy
		obstacle *Obstacle
		gate     bool
		verb     Verb
		state    TargetState
	}{
		"nothing there":                   {choice: Chosen, gate: open, verb: Create, state: Missing},
		"nothing there, the check is out": {choice: Chosen, gate: shut, verb: Nothing, state: Missing},
		"frozen":                          {choice: Frozen, gate: open, copy: func(d *Distribution) *Copy { return ours(d, nil) }},
		"current": {choice: Chosen, gate: open, copy: func(d *Distribution) *Copy { return ours(d, nil) },
			state: Current},
		"other content": {choice: Chosen, gate: shut,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Content = "old" }) }, verb: Update, state: Outdated},
		"DIST-D36 Ignore: a copy that was edited counts as current": {choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Drifted, c.Foreign = true, true }) }, state: Current},
		"DIST-D39 Revert: a copy that was edited is outdated, and updated": {drift: revert, choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Drifted = true }) }, verb: Update, state: Outdated},
		"after a start it is looked at": {drift: revert, choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Known = false }) }, verb: Inspect, state: Current},
		"DIST-D48 a copy with the ownerReference of an earlier RD gets that of RD": {choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Owner = "old" }) }, verb: Remark, state: Current},
		"DIST-D12 a copy in a namespace that is no target any more is deleted, also while the check is " +
			"incomplete": {choice: Unchosen, gate: shut, copy: func(d *Distribution) *Copy { return ours(d, nil) },
			verb: Delete},
		"no target, adopted": {choice: Unchosen,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Adopted, c.Owner = true, "" }) }, verb: HandBack},
		"no target, left behind once": {choice: Unchosen,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Owner = "" }) }},
		"no target, orphan": {deletion: orphan, choice: Unchosen, copy: func(d *Distribution) *Copy { return ours(d, nil) }},
		"no target, orphan, locked": {deletion: orphan, drift: revert, choice: Unchosen,
			copy: func(d *Distribution) *Copy { return ours(d, nil) }, verb: Unlock},
		"DIST-D50 a target whose copy is being deleted is in conflict": {choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Terminating = true }) }, state: InConflict},
		"DIST-D78 a target with a copy of a copy is in conflict": {choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Ours = false }) }, state: InConflict},
		"DIST-D78 a copy of a copy in a namespace that is no target is not written": {choice: Unchosen,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.Ours = false }) }},
		"DIST-D33 a target with another RD's copy is in conflict, also under " +
			"Overwrite": {conflict: v1alpha1.ConflictOverwrite, choice: Chosen, gate: open,
			copy: func(d *Distribution) *Copy { return ours(d, func(c *Copy) { c.By = "other" }) }, state: InConflict},
		"DIST-D21 Fail: a target with an unrelated object is in " +
			"conflict": {choice: Chosen, gate: open, obstacle: &Obstacle{Reason: v1alpha1.ReasonUnrelated},
			state: InConflict},
		"DIST-D28 AdoptIdentical: an unrelated object is compared during the " +
			"check": {conflict: v1alpha1.ConflictAdoptIdentical, choice: Chosen, gate: shut,
			obstacle: &Obstacle{Reason: v1alpha1.ReasonUnrelated}, verb: Examine, state: InConflict},
		"DIST-D28 AdoptIdentical: an equal object is adopted after the " +
			"check": {conflict: v1alpha1.ConflictAdoptIdentical, choice: Chosen, gate: open,
			obstacle: &Obstacle{Reason: v1alpha1.ReasonUnrelated, Examined: true, Identical: true}, verb: Adopt, state: InConflict},
		"DIST-D28 AdoptIdentical: an equal object is not adopted before the check is " +
			"complete": {conflict: v1alpha1.ConflictAdoptIdentical, choice: Chosen, gate: shut,
			obstacle: &Obstacle{Reason: v1alpha1.ReasonUnrelated, Examined: true, Identical: true}, state: InConflict},
		"DIST-D31 Overwrite: an unrelated object is overwritten without a " +
			"check": {conflict: v1alpha1.ConflictOverwrite, choice: Chosen, gate: shut,
			obstacle: &Obstacle{Reason: v1alpha1.ReasonUnrelated}, verb: Overwrite, state: InConflict},
		"DIST-D32 Overwrite: an object with a controller is not overwritten": {conflict: v1alpha1.ConflictOverwrite, choice: Chosen, gate: open,
			obstacle: &Obstacle{Reason: v1alpha1.ReasonControlled}, state: InConflict},
	} {
		t.Run(name, func(t *testing.T) {
			d := distribution(t, orDefault(c.conflict, v1alpha1.ConflictFail), orDefault(c.drift, v1alpha1.DriftIgnore),
				orDefault(c.deletion, v1alpha1.DeletionDelete))
			target := Target{Namespace: "d1", Choice: c.choice, Obstacle: c.obstacle}
			if c.copy != nil {
				target.Copy = c.copy(d)
			}
			if got := d.Plan(target, c.gate); got.Verb != c.verb || got.State != c.state {
				t.Errorf("got verb %d in state %d, want %d in %d", got.Verb, got.State, c.verb, c.state)
			}
		})
	}
}

// FuzzPlan plans for any object that a namespace may have. The action overwrites or deletes another user's object only if the policy allows
// that. After the action, the next plan is Nothing.
func FuzzPlan(f *testing.F) {
	for seed := range uint32(64) {
		f.Add(seed * 2654435761)
	}
	f.Fuzz(func(t *testing.T, bits uint32) {
		take := func(n uint32) uint32 { v := bits % n; bits /= n; return v }
		flag := func() bool { return take(2) == 1 }
		conflicts := []v1alpha1.ConflictPolicy{v1alpha1.ConflictFail, v1alpha1.ConflictSkip, v1alpha1.ConflictAdoptIdentical,
			v1alpha1.ConflictOverwrite}
		d := distribution(t, conflicts[take(4)], []v1alpha1.DriftPolicy{v1alpha1.DriftIgnore, v1alpha1.DriftRevert}[take(2)],
			[]v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan}[take(2)])
		at := Target{Namespace: "d1", Choice: Choice(take(3))}
		mayCreate := flag()
		switch take(3) {
		case 1:
			at.Copy = &Copy{
				By: []string{"regcred", "other"}[take(2)], Ours: flag(), Content: []string{d.Template.Content, "old"}[take(2)],
				Owner: []string{"", d.UID, "dead"}[take(3)], Terminating: flag(), Locked: flag(), Adopted: flag(), Drifted: flag(), Known: flag(),
			}
		case 2:
			at.Obstacle = &Obstacle{Reason: []v1alpha1.Reason{v1alpha1.ReasonUnrelated, v1alpha1.ReasonPropagated, v1alpha1.ReasonControlled,
				v1alpha1.ReasonBeingDeleted}[take(4)],
				Examined: flag(), Identical: flag()}
		}
		before := fmt.Sprintf("%+v %+v %+v", at, at.Copy, at.Obstacle)
		a := d.Plan(at, mayCreate)
		mine := at.Copy != nil && at.Copy.Ours && at.Copy.By == d.Name
		switch a.Verb {
		case Create:
			if at.Copy != nil || at.Obstacle != nil || at.Choice != Chosen || !mayCreate {
				t.Fatalf("makes a copy: %s", before)
			}
		case Update, Remark, Inspect, Unlock, HandBack:
			if !mine {
				t.Fatalf("verb %d on what is not ours: %s", a.Verb, before)
			}
		case Delete:
			if !mine || at.Choice != Unchosen || at.Copy.Adopted || at.Copy.Owner == "" || d.Deletion != v1alpha1.DeletionDelete {
				t.Fatalf("deletes: %s", before)
			}
		case Adopt, Overwrite:
			if at.Obstacle == nil || at.Obstacle.Reason != v1alpha1.ReasonUnrelated || d.Conflict != v1alpha1.ConflictAdoptIdentical &&
				d.Conflict != v1alpha1.ConflictOverwrite {
				t.Fatalf("takes: %s", before)
			}
		}
		if again := d.Plan(done(d, at, a.Verb), mayCreate); again.Verb != Nothing {
			t.Fatalf("after verb %d comes verb %d: %s", a.Verb, again.Verb, before)
		}
	})
}

// done returns the target as it is after an action, like a small model of the API server.
func done(d *Distribution, at Target, verb Verb) Target {
	written := func(content string, adopted bool) *Copy {
		c := &Copy{By: d.Name, Ours: true, Content: content, Adopted: adopted, Known: true, Locked: d.Drift == v1alpha1.DriftRevert}
		if d.Deletion == v1alpha1.DeletionDelete && !adopted {
			c.Owner = d.UID
		}
		return c
	}
	switch verb {
	case Create:
		at.Copy = written(d.Template.Content, false)
	case Update:
		at.Copy = written(d.Template.Content, at.Copy.Adopted)
	case Remark, Inspect:
		at.Copy = written(at.Copy.Content, at.Copy.Adopted)
	case Adopt, Overwrite:
		at.Copy, at.Obstacle = written(d.Template.Content, true), nil
	case Examine:
		o := *at.Obstacle
		o.Examined, o.Reason = true, v1alpha1.ReasonNotIdentical
		at.Obstacle = &o
	case Delete:
		at.Copy = nil
	case HandBack:
		at.Copy = nil
		at.Obstacle = &Obstacle{Reason: v1alpha1.ReasonControlled}
	case Unlock:
		c := *at.Copy
		c.Locked = false
		at.Copy = &c
	}
	return at
}
