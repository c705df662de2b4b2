package copyengine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Tests of what is judged while something on which it depends is behind, or ahead: it must be judged again.

// In mode All, a watch goes on to show copies without their label inherited-from. A watch of Namespaces may be behind.
func TestCopiesWithoutLabelBeforeTheirNamespace(t *testing.T) {
	hash := copies.Hash{Mode: update, Place: copies.PlaceOf(mapped("a"), "acme"), Content: contentNumber(1)}
	stripped := put(mapped("a"), 1, withAnnotation(v1alpha1.AnnotationSourceHash, hash.String()))
	before := planted("acme root", "zeta root")
	after := grown(planted("acme root", "zeta root", "a in acme"), []string{"a"}, "FollowSoon", "queue ConfigMap a/s, namespace a")
	table(t, before, map[string]tableCase{
		"PROP-K13 in mode All, a copy that lost its label and its source before its namespace is known is deleted when it is known": {
			[]func(*apiServer){stripped}, []step{
				after, startedSlot(mapped("a"), "queue source ConfigMap acme/s"),
				startedSource(mapped("acme"), "find ConfigMap acme/s"), answered(mapped("acme"), "queue ConfigMap a/s"),
				startedSlot(mapped("a"), "check ConfigMap a/s"), answered(mapped("a"), "delete ConfigMap a/s"),
			}},
		"PROP-K13 in mode All, a copy that lost its label before its namespace is known is repaired when it is known": {
			[]func(*apiServer){stripped, put(mapped("acme"), 1)}, []step{
				after, startedSlot(mapped("a"), "queue source ConfigMap acme/s"),
				startedSource(mapped("acme"), "read ConfigMap acme/s"), answered(mapped("acme"), "queue ConfigMap a/s"),
				startedSlot(mapped("a"), "update ConfigMap a/s"),
				answered(mapped("a"), "event DriftRepaired on ConfigMap a/s", "repaired ConfigMap, found by watch"), settled(), troubled("a"),
			}},
		"PROP-K13 in mode All, a copy without its label that goes before its namespace is known is nothing to do": {
			[]func(*apiServer){stripped}, []step{
				done(remove(mapped("a"))), shown(),
				grown(planted("acme root", "zeta root", "a in acme"), []string{"a"}, "FollowSoon", "queue namespace a"),
				startedSlot(mapped("a")),
			}},
	})
}

func TestADoubtfulSourceAndANewList(t *testing.T) {
	t.Run("PROP-K14 a source that a read finds after its deletion, and that a new list of the watch "+
		"lacks, is looked for again", func(t *testing.T) {
		s := leading(t, acme(), propagated(at("acme"), 1, update))
		remove(at("acme"))(s.server)
		s.deliver()
		s.start(sourceTask(at("acme")))
		propagated(at("acme"), 1, update)(s.server)
		s.answer(at("acme"))
		remove(at("acme"))(s.server)
		s.server.events = nil // the watch is broken, and lists anew
		watch := copyengine.Watch{Kind: secret, Role: copyengine.SourcesAlone}
		s.apply(copyengine.Listed{Watch: watch, ResourceVersion: fmt.Sprint(s.server.version), Objects: s.server.list(watch)})
		s.settle()
		if made := s.copiesMade(); len(made) > 0 {
			t.Fatalf("copies of a source that is gone: %v", made)
		}
	})
}

func TestAMoveAndALostLabel(t *testing.T) {
	for name, moveFirst := range map[string]bool{
		"PROP-K15 in mode All, a copy whose label is removed before its namespace moves is deleted": false,
		"PROP-K15 in mode All, a copy whose label is removed after its namespace moved is deleted":  true,
	} {
		t.Run(name, func(t *testing.T) {
			s := leading(t, acme(), propagated(mapped("acme"), 1, update))
			relabel(mapped("b"), v1alpha1.LabelInheritedFrom, "")(s.server)
			move := s.moved(acme("b in zeta"), "b")
			for !moveFirst && len(s.server.events) > 0 {
				s.deliver()
			}
			s.apply(move)
			s.settle()
			if _, there := s.server.objects[mapped("b")]; there {
				t.Error("the copy is still there")
			}
		})
	}
}

// narrowSecrets returns a scenario whose only kind are Secrets, watched in this scope.
func narrowSecrets(t *testing.T, scope copyengine.Scope) *scenario {
	s := newScenario(t, acme(), copyengine.Kind{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: scope})
	s.apply(copyengine.FollowDue{})
	return s
}

// show has the watches of a kind in a namespace change their status; those that are synced list objects of the role SourcesAlone.
func (s *scenario) show(kind schema.GroupVersionKind, namespace, version string, now watchset.Status,
	sources ...*metav1.PartialObjectMetadata,
) {
	for _, role := range []copyengine.Role{copyengine.SourcesAlone, copyengine.CopiesAlone} {
		w := copyengine.Watch{Kind: kind.GroupKind(), Role: role}
		if now.State == watchset.Synced {
			s.apply(copyengine.Listed{Watch: w, Namespace: namespace, ResourceVersion: version, Objects: sources})
		}
		s.apply(copyengine.WatchChanged{Watch: w, Namespace: namespace, Status: now})
		sources = nil
	}
}

func TestAnInvalidSourceThatGoesUnseen(t *testing.T) {
	t.Run("PROP-R11 an invalid source that goes while its namespace is not followed is not reported when "+
		"the namespace comes back", func(t *testing.T) {
		s := narrowSecrets(t, copyengine.Namespaces)
		for _, namespace := range []string{"acme", "a", "a1", "zeta", "z", "tmpl"} {
			s.show(secretKind, namespace, "10", syncedStatus(secretKind))
		}
		s.show(secretKind, "b", "10", syncedStatus(secretKind), seenSecret("b", "u", "5", map[string]string{v1alpha1.LabelPropagate: "wrong"}))
		s.apply(copyengine.Elected{})
		s.settle()
		if got := troubled("b").do(s); len(got) != 1 {
			t.Fatal(got)
		}
		s.apply(s.moved(planted("acme root", "a in acme", "a1 in a", "b", "zeta root", "z in zeta", "tmpl template", "solo"), "b", "acme"))
		s.apply(copyengine.FollowDue{})
		s.show(secretKind, "b", "", watchset.Status{State: watchset.Pending})
		s.settle()
		s.apply(s.moved(acme(), "b", "acme"))
		s.apply(copyengine.FollowDue{})
		s.show(secretKind, "b", "20", syncedStatus(secretKind))
		s.settle()
		if got := troubled("b").do(s); len(got) > 0 {
			t.Fatalf("reported of an object that does not exist: %v", got)
		}
	})
}

// removeBeforeAnswer has the copy in a created and removed, and returns the answer to its POST, which the State doesn't have yet.
func (s *scenario) removeBeforeAnswer() (answers []copyengine.Input) {
	s.start(sourceTask(at("acme")))
	s.answer(at("acme"))
	s.start(slotTask(at("a")))
	answers = s.server.carryOut(s.requests[0], s.state.Forest())
	s.requests = nil
	remove(at("a"))(s.server)
	return answers
}

func TestAnswersThatAreOlderThanAWideList(t *testing.T) {
	for _, scope := range []copyengine.Scope{copyengine.Cluster, copyengine.Auto} {
		t.Run(fmt.Sprintf("PROP-K16 in scope %s, a copy that is gone from a new list of the whole cluster "+
			"before its POST is answered is made again",
			scope), func(t *testing.T) {
			s := narrowSecrets(t, scope)
			propagated(at("acme"), 1, update)(s.server)
			s.server.events = nil
			s.list()
			s.apply(copyengine.Elected{})
			answers := s.removeBeforeAnswer()
			s.server.events = nil // the watch is broken, and lists anew
			s.server.version++
			watch := copyengine.Watch{Kind: secret, Role: copyengine.CopiesAlone}
			s.apply(copyengine.Listed{Watch: watch, ResourceVersion: fmt.Sprint(s.server.version), Objects: s.server.list(watch)})
			for _, answer := range answers {
				s.apply(answer)
			}
			s.settle()
			if _, exists := s.server.objects[at("a")]; !exists {
				t.Fatal("the State takes a copy for existing that does not")
			}
		})
	}
}

func TestAnswersAboutANamespaceThatWasMadeAnew(t *testing.T) {
	t.Run("PROP-K19 the answer to a POST whose namespace was deleted and made anew since says nothing about the new one", func(t *testing.T) {
		s := newLeader(t, propagated(at("acme"), 1, update))
		answers := s.removeBeforeAnswer()
		behind := s.server.events // the watch of Secrets is behind that of Namespaces
		anew := *s.state.Forest().Namespace("a")
		anew.UID = "anew"
		s.apply(s.moved(s.state.Forest().WithNamespace(&anew), "a"))
		for _, answer := range answers {
			s.apply(answer)
		}
		s.state.Read(func(w *copies.World) {
			if w.Copies.At(at("a")) != nil {
				t.Error("the State takes a copy for existing that went with its namespace")
			}
		})
		s.server.events = append(behind, s.server.events...)
		s.settle()
		if _, exists := s.server.objects[at("a")]; !exists {
			t.Error("the new namespace has no copy")
		}
	})
}

func TestMemoryOfWatchesInScopeAuto(t *testing.T) {
	s := narrowSecrets(t, copyengine.Auto)
	s.list()
	s.apply(copyengine.Elected{})
	s.settle()
	before := s.state.RememberedWatches()
	for i := range 100 {
		name := fmt.Sprint("n", i)
		watch := copyengine.Watch{Kind: secret, Role: copyengine.CopiesAlone}
		s.apply(s.moved(acme(name+" in acme"), name))
		s.apply(copyengine.ObjectSeen{Watch: watch, Object: metaOfCopy(name, "acme", "u", fmt.Sprint(200+2*i))})
		s.apply(copyengine.ObjectGone{Watch: watch, Object: metaOfCopy(name, "acme", "u", fmt.Sprint(201+2*i))})
		s.apply(s.moved(acme(), name))
		s.apply(copyengine.FollowDue{})
		s.settle()
	}
	if after := s.state.RememberedWatches(); after > before {
		t.Fatalf("%d entries, then %d, after 100 namespaces have come and gone", before, after)
	}
}

func TestRailsAfterAWaitThatEnded(t *testing.T) {
	t.Run("PROP-O7 rights wait for a new rail also in a namespace where earlier rights had waited in vain", func(t *testing.T) {
		kinds := scenarioKinds()
		kinds[2].Scope = copyengine.Namespaces
		s := newScenario(t, grownBy(), kinds...)
		propagated(rights("acme"), 1, update)(s.server)
		s.server.events = nil
		s.list()
		s.apply(copyengine.FollowDue{})
		forbids := watchset.Status{State: watchset.Forbidden, Missing: []string{"list"}}
		s.show(limitRangeKind, "", "", forbids)
		for _, namespace := range []string{"acme", "tmpl", "zeta"} {
			s.show(limitRangeKind, namespace, fmt.Sprint(s.server.version), syncedStatus(limitRangeKind))
		}
		s.show(limitRangeKind, "a", "", forbids)
		s.apply(copyengine.Elected{})
		s.settle() // after 10 s, the RoleBinding is made although LimitRanges are not seen in a
		if _, made := s.server.objects[rights("a")]; !made {
			t.Fatal("no rights")
		}
		s.show(limitRangeKind, "a", fmt.Sprint(s.server.version), syncedStatus(limitRangeKind)) // an admin grants the right
		s.settle()
		s.pass(time.Hour)
		s.settle()
		propagated(limits("tmpl"), 1, update)(s.server)
		propagated(more("tmpl"), 1, update)(s.server)
		for len(s.server.events) > 0 {
			s.deliver()
		}
		s.start(sourceTask(limits("tmpl")))
		s.start(sourceTask(more("tmpl")))
		s.answer(more("tmpl"))
		if words := s.start(slotTask(more("a"))); !slices.Contains(words, "later RoleBinding a/more") {
			t.Fatal(words)
		}
	})
}

// In the scenario, the RoleBinding in a names Role r, which is a copy there.
func TestTheRoleBesideTheSource(t *testing.T) {
	t.Run("PROP-I19 when the copy of a Role beside the source of a RoleBinding goes, copies of that "+
		"RoleBinding below are planned again", func(t *testing.T) {
		roles := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
		kinds := append(scenarioKinds(), copyengine.Kind{GroupVersionKind: roles, Mode: copies.OptIn, Scope: copyengine.Cluster})
		s := newScenario(t, acme(), kinds...)
		role := func(namespace string) copies.Slot { return in(namespace, copies.RoleKind, "r") }
		propagated(role("acme"), 1, update)(s.server)
		s.server.events = nil
		s.list()
		s.apply(copyengine.Elected{})
		s.settle()
		propagated(rights("a"), 1, update)(s.server)
		s.settleNaming(rights("a"), "r")
		if _, made := s.server.objects[rights("a1")]; !made {
			t.Fatal("no RoleBinding below")
		}
		s.server.refuse = func(w copyengine.WriteCopy) error {
			if w.Slot == rights("a1") && w.Action.Verb == copies.Create {
				return copies.OtherRoleError{}
			}
			return nil
		}
		propagated(role("acme"), 1, update, withAnnotation(v1alpha1.AnnotationSelect, "kubernetes.io/metadata.name!=a"))(s.server)
		s.settleNaming(rights("a"), "r")
		s.state.Read(func(w *copies.World) {
			if w.Plan(rights("a1")).Verb == copies.Delete {
				t.Error("everything has settled, and the copy of the RoleBinding is still to be deleted")
			}
		})
	})
}

// settleNaming is settle, but reads of the RoleBinding source show that it names role.
func (s *scenario) settleNaming(source copies.Slot, role string) {
	end := s.now.Add(5 * time.Minute)
	for range limit {
		switch {
		case len(s.queue) > 0:
			s.start(s.queue[0])
		case len(s.requests) > 0:
			request := s.requests[0]
			s.requests = s.requests[1:]
			for _, input := range s.server.carryOut(request, s.state.Forest()) {
				if read, is := input.(copyengine.BodyRead); is && read.Source == source {
					read.Body.Role = role
				}
				s.apply(input)
			}
		case len(s.server.events) > 0:
			s.deliver()
		case !s.wake(end):
			return
		}
	}
	s.fail("no end")
}

func TestAnAnswerIsAboutTheCopyThatWasThere(t *testing.T) {
	t.Run("PROP-K18 the answer to the update of a copy that was deleted and restored meanwhile does not hide the restored one, which is "+
		"updated", func(t *testing.T) {
		s := leading(t, acme(), propagated(at("acme"), 1, update))
		s.settle()
		old := s.server.objects[at("a")]
		propagated(at("acme"), 2, update)(s.server)
		s.deliver()
		late := s.holdWrite(at("a"))
		remove(at("a"))(s.server)
		again := old
		again.meta = old.meta.DeepCopy()
		again.meta.UID = s.server.newUID()
		s.server.store(at("a"), again)
		for len(s.server.events) > 0 {
			s.deliver()
		}
		for _, input := range late {
			s.apply(input)
		}
		if s.settle(); s.server.objects[at("a")].content != contentNumber(2) {
			t.Errorf("the restored copy has content %s", s.server.objects[at("a")].content)
		}
	})
}

// holdWrite works until a write of a copy is asked for, carries it out, and returns the answer.
func (s *scenario) holdWrite(slot copies.Slot) []copyengine.Input {
	for range 1000 {
		i := slices.IndexFunc(s.requests, func(r copyengine.Request) bool {
			w, writes := r.(copyengine.WriteCopy)
			return writes && w.Slot == slot
		})
		switch {
		case i >= 0:
			r := s.requests[i]
			s.requests = slices.Delete(s.requests, i, i+1)
			return s.server.carryOut(r, s.state.Forest())
		case len(s.requests) > 0:
			s.answerNth(0)
		case len(s.queue) > 0:
			s.start(s.queue[0])
		default:
			s.deliver()
		}
	}
	s.fail("no write of %s", slot)
	return nil
}
