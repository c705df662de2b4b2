package copyengine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
)

// table runs each case with a State that leads over the forest f, and to which the case's facts are known.
func table(t *testing.T, f *forest.Snapshot, cases map[string]tableCase) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { leading(t, f, test.facts...).run(test.steps...) })
	}
}

type tableCase struct {
	facts []func(*apiServer)
	steps []step
}

var (
	limitRange  = limitRangeKind.GroupKind()
	roleBinding = roleBindingKind.GroupKind()

	limits = func(namespace string) copies.Slot { return in(namespace, limitRange, "limits") }
	rights = func(namespace string) copies.Slot { return in(namespace, roleBinding, "rights") }
	more   = func(namespace string) copies.Slot { return in(namespace, roleBinding, "more") }
	mapped = func(namespace string) copies.Slot { return in(namespace, configMap, "s") }
)

// grownBy returns a forest with root acme, which references template tmpl, its child a, root zeta, and more namespaces.
func grownBy(more ...string) *forest.Snapshot {
	return planted(append([]string{"acme root of tmpl", "a in acme", "tmpl template", "zeta root"}, more...)...)
}

func TestRailsBeforeRights(t *testing.T) {
	facts := []func(*apiServer){propagated(limits("tmpl"), 1, update), propagated(rights("acme"), 1, update)}
	begun := []step{
		grown(grownBy("new in acme"), []string{"new"}, "FollowSoon", "queue namespace new"),
		startedNamespace("new", "queue LimitRange new/limits, RoleBinding new/rights"),
		startedSlot(rights("new"), "later RoleBinding new/rights"),
		startedSlot(limits("new"), "create LimitRange new/limits"),
	}
	table(t, grownBy(), map[string]tableCase{
		"PROP-O1 a RoleBinding is created as soon as the last rail of its namespace is answered": {facts, append(slices.Clone(begun),
			answered(limits("new"), "queue RoleBinding new/rights"),
			startedSlot(rights("new"), "create RoleBinding new/rights"),
			answered(rights("new")),
		)},
		"PROP-O2 after 10 s without a rail, the RoleBinding is created, with one Event " +
			"RailsMissing; a further one does not wait": {facts, append(slices.Clone(begun),
			refused(limits("new"), forbidden("no"), "event CopyRejected on LimitRange tmpl/limits", "later LimitRange new/limits",
				"report acme, new, tmpl"),
			passed(9*time.Second, "LimitRange new/limits"),
			startedSlot(rights("new"), "later RoleBinding new/rights"),
			passed(time.Second, "LimitRange new/limits", "RoleBinding new/rights"),
			startedSlot(rights("new"), "RightsBeforeRails", "create RoleBinding new/rights", "event RailsMissing on RoleBinding acme/rights"),
			answered(rights("new")),
			done(propagated(more("acme"), 1, update)),
			shown("queue source RoleBinding acme/more"),
			startedSource(more("acme"), "read RoleBinding acme/more"),
			answered(more("acme"), "queue RoleBinding a/more, RoleBinding new/more"),
			startedSlot(more("new"), "create RoleBinding new/more"),
		)},
		"PROP-O6 if another object has the name of a rail, the RoleBinding is created at once": {facts, append(slices.Clone(begun),
			refused(limits("new"), copies.ErrObstacle, "event Conflict on LimitRange tmpl/limits", "later LimitRange new/limits",
				"queue RoleBinding new/rights", "report acme, new, tmpl"),
			startedSlot(rights("new"), "create RoleBinding new/rights"),
		)},
		"PROP-O6 if a watch shows that the other object is gone, the RoleBinding is created after the rail": {
			[]func(*apiServer){put(mapped("a"), 9), put(mapped("acme"), 1)}, []step{
				done(remove(mapped("a"))),
				done(propagated(rights("acme"), 1, update)),
				shown("queue ConfigMap a/s, source ConfigMap a/s", "queue source RoleBinding acme/rights"),
				startedSource(rights("acme"), "read RoleBinding acme/rights"),
				answered(rights("acme"), "queue RoleBinding a/rights"),
				startedSlot(rights("a"), "later RoleBinding a/rights"),
				startedSlot(mapped("a"), "probe, create ConfigMap a/s"),
				answered(mapped("a"), "event ConflictResolved on ConfigMap acme/s", "queue RoleBinding a/rights", "report a, acme"),
				startedSlot(rights("a"), "create RoleBinding a/rights"),
			}},
		"PROP-O3 RoleBindings that a namespace had before a new rail are " +
			"created again and updated at once": {append(facts, propagated(more("acme"), 1, update)), []step{
			done(propagated(in("tmpl", limitRange, "late"), 1, update)),
			done(remove(rights("a"))),
			shown("queue source LimitRange tmpl/late", "queue RoleBinding a/rights"),
			startedSource(in("tmpl", limitRange, "late"), "read LimitRange tmpl/late"),
			startedSlot(rights("a"), "create RoleBinding a/rights"),
			done(relabel(more("a"), "drift", "x")),
			shown("queue RoleBinding a/more"),
			startedSlot(more("a"), "update RoleBinding a/more"),
		}},
		"PROP-O4 the tenant's RoleBindings in a namespace wait for its rails as well, for 10 s at most": {facts, []step{
			applied(copyengine.RightsAsked{Namespace: "a"}),
			grown(grownBy("new in acme"), []string{"new"}, "FollowSoon", "queue namespace new"),
			applied(copyengine.RightsAsked{Namespace: "new"}, "RightsWait"),
			passed(9999*time.Millisecond, "namespace new"),
			applied(copyengine.RightsAsked{Namespace: "new"}, "RightsWait"),
			passed(time.Millisecond, "namespace new"),
			applied(copyengine.RightsAsked{Namespace: "new"}, "RightsBeforeRails"),
			startedSlot(limits("new"), "create LimitRange new/limits"),
			answered(limits("new")),
			applied(copyengine.RightsAsked{Namespace: "new"}),
		}},
	})
}

func TestConflicts(t *testing.T) {
	obstructed := []func(*apiServer){put(at("a"), 9), propagated(at("acme"), 1, update)}
	const exists = "an object of that name exists: rename or delete it"
	forged := withLabel(v1alpha1.LabelInheritedFrom, "acme")
	hash := copies.Hash{Mode: update, Place: copies.PlaceOf(at("b"), "acme"), Content: contentNumber(1)}
	exported := withAnnotation(v1alpha1.AnnotationSourceHash, hash.String())
	table(t, acme(), map[string]tableCase{
		"PROP-K1 an unrelated object with the name of a copy stays, and is reported": {nil, []step{
			done(put(at("a"), 9)), shown(),
			done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"),
			startedSource(at("acme"), "read Secret acme/s"),
			answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"),
			answered(at("a"), "event Conflict on Secret acme/s", "later Secret a/s", "report a, acme"),
			troubled("a", "Conflict Secret a/s from acme: "+exists),
			settled(), troubled("a", "Conflict Secret a/s from acme: "+exists),
		}},
		"PROP-K2 after the unrelated object is deleted, a metadata read finds that, and the copy is created": {obstructed, []step{
			done(remove(at("a"))), shown(),
			startedSlot(at("a"), "probe, create Secret a/s"),
			answered(at("a"), "event ConflictResolved on Secret acme/s", "report a, acme"),
			troubled("a"),
		}},
		"PROP-K2 in mode All, a watch shows that the object is gone, " +
			"and the copy is created at once": {[]func(*apiServer){put(mapped("a"), 9), put(mapped("acme"), 1)}, []step{
			troubled("a", "Conflict ConfigMap a/s from acme: "+exists),
			done(remove(mapped("a"))), shown("queue ConfigMap a/s, source ConfigMap a/s"),
			startedSlot(mapped("a"), "probe, create ConfigMap a/s"),
			answered(mapped("a"), "event ConflictResolved on ConfigMap acme/s", "report a, acme"),
		}},
		"PROP-K3 unrelated objects in several namespaces lead to one Event": {[]func(*apiServer){put(at("a"), 9), put(at("b"), 9)}, []step{
			done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"),
			startedSource(at("acme"), "read Secret acme/s"),
			answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "event Conflict on Secret acme/s", "later Secret a/s", "report a, acme"),
			startedSlot(at("b"), "create Secret b/s"), answered(at("b"), "later Secret b/s", "report acme, b"),
		}},
		"PROP-K4 an exported copy in another namespace is never written or deleted, and is a conflict where the source is wanted": {nil, []step{
			done(put(at("z"), 1, forged, exported)), shown("queue Secret z/s"), startedSlot(at("z")),
			done(put(at("a"), 1, forged, exported)), shown("queue Secret a/s"), startedSlot(at("a")),
			done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"),
			startedSource(at("acme"), "read Secret acme/s"),
			answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s, Secret z/s"),
			startedSlot(at("a"), "event Conflict on Secret acme/s", "report a, acme"), startedSlot(at("z")),
			done(remove(at("acme"))), shown("queue Secret acme/s, source Secret acme/s"),
			settled(), startedSlot(at("a")), startedSlot(at("z")),
		}},
		"PROP-K5 an object with a forged hash is never written or deleted": {[]func(*apiServer){propagated(at("acme"), 1, update)}, []step{
			done(put(in("a", secret, "f"), 1, forged, withAnnotation(v1alpha1.AnnotationSourceHash,
				copies.Hash{Mode: update, Place: "0123456789abcdef", Content: contentNumber(1)}.String()))),
			shown("queue Secret a/f"), startedSlot(in("a", secret, "f")),
			startedNamespace("a", "queue Secret a/f, Secret a/s"), startedSlot(in("a", secret, "f")),
		}},
		"PROP-K6 after a POST without an answer, the next POST finds the copy, and there is no conflict": {nil, []step{
			done(func(a *apiServer) { a.loseReply = func(w copyengine.WriteCopy) bool { return w.Slot == at("a") } }),
			done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"),
			startedSource(at("acme"), "read Secret acme/s"),
			answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "later Secret a/s", "log a request failed; it is tried again",
				"report a, acme"),
			done(func(a *apiServer) { a.loseReply = nil }), passed(time.Second, "Secret a/s", "Secret a1/s", "Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "queue Secret a/s", "report a, acme"),
			startedSlot(at("a")),
		}},
		"PROP-K7 an object in deletion gets no PUT and is no conflict; after it is gone, the copy is created": {nil, []step{
			done(put(at("a"), 9, func(m *metav1.ObjectMeta) { m.Finalizers = []string{"example.com/keep"} })), done(remove(at("a"))), shown(),
			done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"),
			startedSource(at("acme"), "read Secret acme/s"),
			answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "later Secret a/s", "report a, acme"), troubled("a"),
			startedSlot(at("a"), "probe, create Secret a/s"), answered(at("a"), "later Secret a/s"),
			done(released(at("a"))), startedSlot(at("a"), "probe, create Secret a/s"), answered(at("a"), "report a, acme"),
		}},
		"PROP-K8 after a copy without its label is found and deleted because of a " +
			"move, other writes there continue at once": {[]func(*apiServer){propagated(at("acme"), 1, update),
			propagated(other("zeta"), 1, update)}, []step{
			done(relabel(at("a"), v1alpha1.LabelInheritedFrom, "")), shown("queue Secret a/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "queue Secret a/s"),
			grown(acme("a in zeta"), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			startedSlot(at("a"), "check Secret a/s"), startedSlot(other("a")),
			answered(at("a"), "delete Secret a/s"), answered(at("a"), "queue Secret a/s, namespace a"),
			startedSlot(other("a"), "create Secret a/other"),
		}},
		"PROP-K10 a copy without its label is found and rewritten when a source " +
			"further up is wanted; it is no conflict": {[]func(*apiServer){propagated(at("a"),
			1, update)}, []step{
			done(relabel(at("a1"), v1alpha1.LabelInheritedFrom, "")), done(propagated(at("acme"), 2, update)), settled(),
			troubled("a1"), startedSlot(at("a1")),
		}},
		"PROP-K8 a copy without its label that changes once more " +
			"is found again, and updated": {[]func(*apiServer){propagated(at("acme"), 1, update)}, []step{
			done(relabel(at("a"), v1alpha1.LabelInheritedFrom, "")), shown("queue Secret a/s"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "queue Secret a/s"),
			done(relabel(at("a"), "drift", "x")), shown(),
			startedSlot(at("a"), "update Secret a/s"), answered(at("a"), "later Secret a/s", "queue Secret a/s", "report a, acme"),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "queue Secret a/s", "report a, acme"),
			startedSlot(at("a"), "update Secret a/s"),
		}},
	})
}

// A read must not count if a watch has already shown a newer version, or that the object is gone.
func TestLateAnswers(t *testing.T) {
	late := func(answer func(*scenario) copyengine.Input, want ...string) step {
		return step{func(s *scenario) []string {
			input := answer(s)
			s.requests = nil
			return s.apply(input)
		}, want}
	}
	var found copyengine.Result
	table(t, acme(), map[string]tableCase{
		"PROP-K9 if a read finds a copy, but the watch has shown its " +
			"deletion, the copy is created again": {[]func(*apiServer){propagated(at("acme"), 1, update)}, []step{
			done(func(a *apiServer) { found.Found = a.objects[at("a")].meta }),
			done(remove(at("a"))), shown("queue Secret a/s"),
			startedSlot(at("a"), "create Secret a/s"),
			late(func(s *scenario) copyengine.Input {
				return copyengine.CopyWritten{WriteCopy: s.requests[0].(copyengine.WriteCopy), Result: found}
			}, "queue Secret a/s"),
			startedSlot(at("a"), "create Secret a/s"),
		}},
		"PROP-K9 if a read finds no source, but the watch has shown its creation " +
			"and a second deletion, it is read again": {[]func(*apiServer){propagated(at("acme"), 1, update)}, []step{
			done(remove(at("acme"))), shown("queue Secret acme/s, source Secret acme/s"),
			startedSource(at("acme"), "find Secret acme/s"),
			done(propagated(at("acme"), 2, update)), done(remove(at("acme"))),
			shown("queue source Secret acme/s", "queue Secret acme/s, source Secret acme/s"),
			late(func(*scenario) copyengine.Input {
				return copyengine.LossFound{Source: at("acme"), Loss: copies.Doubtful}
			}, "queue source Secret acme/s"),
			startedSource(at("acme"), "find Secret acme/s"),
		}},
	})
}

func TestMovesOfNamespaces(t *testing.T) {
	one, two := func(ns string) copies.Slot { return in(ns, secret, "one") }, func(ns string) copies.Slot { return in(ns, secret, "two") }
	facts := []func(*apiServer){propagated(one("acme"), 1, update), propagated(two("acme"), 1, update), propagated(one("zeta"), 2, update)}
	there := acme("a in zeta")
	begun := []step{
		grown(there, []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
		startedSlot(two("a"), "check Secret a/two"), startedSlot(one("a"), "check Secret a/one"),
		answered(two("a"), "delete Secret a/two"), answered(one("a"), "delete Secret a/one"),
	}
	hash := copies.Hash{Mode: create, Place: copies.PlaceOf(at("a"), "acme"), Content: contentNumber(1)}
	table(t, acme(), map[string]tableCase{
		"PROP-V1 in a namespace that moved, the last DELETE is " +
			"answered before the first POST": {append(slices.Clone(facts), propagated(at("zeta"), 1, update)),
			append(slices.Clone(begun),
				startedSlot(at("a")),
				answered(two("a")), shown("queue Secret a/two, namespace a"), startedSlot(at("a")),
				answered(one("a"), "queue namespace a"), startedSlot(at("a")), shown("queue Secret a/one, namespace a"),
				startedSlot(one("a"), "create Secret a/one"), startedSlot(at("a"), "create Secret a/s"),
			)},
		"PROP-V2 a DELETE that is refused holds back writes in its own namespace alone": {facts, append(slices.Clone(begun),
			answered(one("a")), shown("queue Secret a/one"), startedSlot(one("a")),
			refused(two("a"), forbidden("not this one"), "event CopyRejected on Secret acme/two", "later Secret a/two", "report a, acme, zeta"),
			startedSlot(one("a")),
			passed(3*time.Second, "Secret a/two", "namespace a", "namespace a1"), ticked(false, "report a, zeta"),
			troubled("a", "WaitingForRemoval Secret a/two from acme: the operator deletes it before it writes copies of other sources, but the API "+
				"server refuses to delete it: not this one"),
			startedNamespace("a1", "queue Secret a1/one, Secret a1/two"), startedSlot(one("a1"), "check Secret a1/one"),
		)},
		"PROP-V4 below a missing parent, copies stay until the parent is back, also of a source that is deleted": {facts, []step{
			grown(acme("a in nowhere"), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			startedNamespace("a", "queue Secret a/one, Secret a/two", "MoveEnded"), startedSlot(one("a")),
			done(remove(one("acme"))), shown("queue Secret acme/one, source Secret acme/one"), settled(),
			startedSlot(one("a")), startedSlot(one("a1")),
			grown(acme(), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			startedSlot(one("a"), "check Secret a/one"), startedSlot(two("a")),
		}},
		"PROP-V5 outside every tree, copies in mode update are deleted, and those in mode create stay": {[]func(*apiServer){
			propagated(one("acme"), 1, update), put(at("a"), 1, withLabel(v1alpha1.LabelInheritedFrom, "acme"),
				withAnnotation(v1alpha1.AnnotationSourceHash, hash.String())),
		}, []step{
			grown(acme("a"), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			startedSlot(one("a"), "check Secret a/one"), startedSlot(at("a")),
		}},
		"PROP-V6 if a live read shows that the forest is out of date, nothing is deleted": {facts, []step{
			grown(there, []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			startedSlot(two("a"), "check Secret a/two"),
			refused(two("a"), copies.ErrBehind, "later Secret a/two"),
			passed(time.Second, "Secret a/two", "namespace a", "namespace a1"),
			startedSlot(two("a"), "check Secret a/two"),
			grown(acme(), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
			answered(two("a"), "later Secret a/two"), startedSlot(two("a")),
		}},
	})
}

func TestUnansweredDeletions(t *testing.T) {
	one, two := func(ns string) copies.Slot { return in(ns, secret, "one") }, func(ns string) copies.Slot { return in(ns, secret, "two") }
	facts := []func(*apiServer){propagated(one("acme"), 1, update), propagated(two("acme"), 1, update)}
	begun := []step{
		done(relabel(one("acme"), v1alpha1.LabelPropagate, "none")), shown("queue source Secret acme/one"),
		startedSource(one("acme"), "queue Secret a/one, Secret a1/one, Secret b/one"),
		startedSlot(one("a"), "check Secret a/one"), answered(one("a"), "delete Secret a/one"),
		done(resized(two("acme"), 2, 100)), shown("queue source Secret acme/two"), startedSource(two("acme"), "read Secret acme/two"),
		answered(two("acme"), "queue Secret a/two, Secret a1/two, Secret b/two"),
	}
	table(t, acme(), map[string]tableCase{
		"PROP-V1 a write waits for the answer to a DELETE, in the same namespace only": {facts, append(slices.Clone(begun),
			startedSlot(two("a")), startedSlot(two("b"), "update Secret b/two"),
			startedSlot(one("a1"), "check Secret a1/one"),
			answered(one("a"), "queue namespace a"),
			startedNamespace("a", "queue Secret a/one, Secret a/two"), startedSlot(two("a"), "update Secret a/two"),
		)},
		"PROP-V1 it also waits when a watch has already shown that the copy is gone": {facts, append(slices.Clone(begun),
			startedSlot(two("a")),
			done(remove(one("a"))), shown("queue Secret a/one, namespace a"), startedSlot(two("a")),
			answered(one("a"), "queue namespace a"), startedSlot(two("a"), "update Secret a/two"),
		)},
		"PROP-V2 if the connection fails during a DELETE that is not due to a move, other writes do not wait": {facts, append(slices.Clone(begun),
			startedSlot(two("a")),
			refused(one("a"), errors.New("reset"), "later Secret a/one", "log a request failed; it is tried again",
				"queue Secret a/two", "report a, acme"),
			startedSlot(two("a"), "update Secret a/two"),
		)},
		"PROP-V2 the start of a wait is reported once, and so is its end": {facts, append(slices.Clone(begun),
			startedSlot(two("a")), ticked(false), passed(time.Second, "Secret a1/one", "Secret a1/two", "Secret b/one", "Secret b/two"),
			ticked(false, "report a, acme"), ticked(false),
			answered(one("a"), "queue namespace a", "report a, acme"),
		)},
	})
}

func TestTurns(t *testing.T) {
	s := leading(t, acme(), propagated(at("acme"), 1, update), propagated(rights("acme"), 1, update),
		propagated(in("zeta", secret, "big"), 1, update))
	turn := func(key copyengine.Key) string {
		of := s.state.TurnOf(key)
		return fmt.Sprintf("%s %d %s %d %d %t", of.Tenant, of.Class, of.Lane, of.Burst, of.Weight, of.Urgent)
	}
	remove(rights("acme"))(s.server)
	resized(in("zeta", secret, "big"), 2, 1<<20)(s.server)
	remove(at("a"))(s.server)
	s.run(shown("queue RoleBinding acme/rights, source RoleBinding acme/rights", "queue source Secret zeta/big", "queue Secret a/s"),
		startedSource(rights("acme"), "find RoleBinding acme/rights"),
		answered(rights("acme"), "queue RoleBinding a/rights, RoleBinding a1/rights, RoleBinding b/rights"),
		startedSource(in("zeta", secret, "big"), "read Secret zeta/big"), answered(in("zeta", secret, "big"), "queue Secret z/big"))
	for name, test := range map[string]struct {
		key  copyengine.Key
		want string
	}{
		"PROP-Q2 the deletion of a RoleBinding comes first": {slotTask(rights("a")),
			"acme 0 RoleBinding.rbac.authorization.k8s.io/acme/rights 0 0 true"},
		"PROP-Q5 a copy waits in the turn of its source":           {slotTask(at("a")), "acme 2 Secret/acme/s 1 0 false"},
		"PROP-Q5 a read of a source waits in the turn of its tree": {sourceTask(in("zeta", secret, "big")), "zeta 0  0 0 false"},
		"PROP-Q5 the plan of a namespace is urgent":                {namespaceTask("a"), "acme 0  0 0 true"},
		"PROP-Q7 copies of a large source count with their size, and follow one another": {slotTask(in("z", secret, "big")),
			"zeta 2 Secret/zeta/big 17 1048576 false"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := turn(test.key); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("PROP-Q4 a change that concerns no namespace queues nothing", func(*testing.T) {
		s.run(applied(copyengine.ForestChanged{Old: s.state.Forest(), New: s.state.Forest()}, "FollowSoon"))
	})
}
