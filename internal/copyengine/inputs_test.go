package copyengine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestBackoff(t *testing.T) {
	t.Run("PROP-I8 with the default retry, a refused copy is tried at most 12 times in 10 min", func(t *testing.T) {
		retry := configfile.Default().Propagation.Retry
		for i := range 1000 {
			tries := 1
			for passed := time.Duration(0); ; tries++ {
				if passed += copies.Backoff(retry.Min.Duration, retry.Max.Duration, tries, at(fmt.Sprint(i))); passed > 10*time.Minute {
					break
				}
			}
			if tries > 12 {
				t.Fatalf("%d tries in 10 minutes", tries)
			}
		}
	})
	t.Run("PROP-K12 a conflict is read again with a back-off of at most 45 s", func(t *testing.T) {
		highest := copyengine.DefaultTiming().ConflictMax
		for tries := range 1000 {
			if d := copies.Backoff(time.Second, highest, tries+1, at("a")); d > highest || tries > 10 && d < highest*4/5 {
				t.Fatalf("after %d tries it waits for %s", tries+1, d)
			}
		}
	})
}

// known checks whether the State knows everything about a namespace.
func known(namespace string, want bool) step {
	return step{func(s *scenario) []string { return []string{fmt.Sprint(s.state.IsKnown(namespace))} }, []string{fmt.Sprint(want)}}
}

// newLeader returns a scenario whose State leads, knows everything that facts have put into the API server, and has done no work yet.
func newLeader(t *testing.T, facts ...func(*apiServer)) *scenario {
	s := newScenario(t, acme(), scenarioKinds()...)
	for _, fact := range facts {
		fact(s.server)
	}
	s.server.events = nil
	s.list()
	s.apply(copyengine.Elected{})
	return s
}

func TestFailures(t *testing.T) {
	begun := []step{
		startedSource(at("acme"), "read Secret acme/s"), answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
		startedSlot(at("a"), "create Secret a/s"),
	}
	cage := forbidden(`secrets "s" is forbidden: ValidatingAdmissionPolicy 'warren-operator-cage-objects' with binding 'b' denied request: no`)
	other := forbidden(`secrets "s" is forbidden: ValidatingAdmissionPolicy 'no-secrets' with binding 'no-secrets' denied request: no`)
	for name, steps := range map[string][]step{
		"PROP-I9 a copy in a terminating namespace is neither tried again nor reported": {refused(at("a"), namespaceEnds(at("a"))), troubled("a"),
			passed(time.Hour, "Secret a1/s", "Secret b/s")},
		"PROP-I10 an object in deletion with the name of a copy does not delay the report of any namespace": {
			refused(at("a"), copies.ErrBeingDeleted, "later Secret a/s"), ticked(true, "report a, acme"), known("a", true),
			known("b", true), troubled("a"),
		},
		"PROP-I16 the first refusal by the operator's own cage sends no Event, and the second sends CopyRejected": {
			refused(at("a"), cage, "later Secret a/s"), startedSlot(at("a"), "create Secret a/s"),
			refused(at("a"), cage, "later Secret a/s", "event CopyRejected on Secret acme/s"),
		},
		"PROP-I16 a refusal by a policy of others " +
			"sends CopyRejected at once": {refused(at("a"), other, "later Secret a/s", "event CopyRejected on Secret acme/s")},
		"PROP-R9 while a write is answered by 500, its namespace and those above are not known; others are": {
			refused(at("a"), unavailable(), "later Secret a/s", "log a request failed; it is tried again"),
			ticked(true, "report a, acme"), known("a", false), known("acme", false), known("b", true),
			startedSlot(at("a"), "create Secret a/s"), answered(at("a"), "report a, acme"), known("a", true),
		},
		"PROP-R12 after a start, a namespace is known only when a copy in it that waits for its Role " +
			"counts as rejected": {
			refused(at("a"), copies.OtherRoleError{}, "later Secret a/s"), ticked(true, "report a, acme"), known("a", false), known("b", true),
			startedSlot(at("a"), "create Secret a/s"), refused(at("a"), copies.OtherRoleError{}, "later Secret a/s"), known("a", false),
			startedSlot(at("a"), "create Secret a/s"), refused(at("a"), copies.OtherRoleError{}, "later Secret a/s"), known("a", false),
			startedSlot(at("a"), "create Secret a/s"),
			refused(at("a"), copies.OtherRoleError{}, "later Secret a/s", "event CopyRejected on Secret acme/s", "report a, acme"),
			known("a", true),
		},
		"PROP-R9 no namespace is known before all work was tried once": {ticked(false), known("a", false), ticked(true), known("a", true)},
	} {
		t.Run(name, func(t *testing.T) {
			newLeader(t, propagated(at("acme"), 1, update)).run(append(slices.Clip(begun), steps...)...)
		})
	}
}

func TestReadsOfSources(t *testing.T) {
	for name, test := range map[string]struct {
		source func(*apiServer)
		steps  []step
	}{
		"PROP-S6 a source that selects namespaces is read, and its copies are queued": {propagated(at("acme"), 1, update), []step{
			startedSource(at("acme"), "read Secret acme/s"), answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
		}},
		"PROP-S6 a source that selects nothing is not read": {propagated(at("acme"), 1, update, withAnnotation(v1alpha1.AnnotationSelect,
			"none=here")), []step{
			startedSource(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"), startedSlot(at("a")),
		}},
		"PROP-S6 if a read finds no source, the copies do not repeat it": {propagated(at("acme"), 1, update), []step{
			startedSource(at("acme"), "read Secret acme/s"), done(remove(at("acme"))), answered(at("acme")),
		}},
		"PROP-S6 if a read finds another object of that name, the copies do not repeat it": {propagated(at("acme"), 1, update), []step{
			startedSource(at("acme"), "read Secret acme/s"), done(remove(at("acme"))), done(propagated(at("acme"), 2, update)), answered(at("acme")),
		}},
	} {
		t.Run(name, func(t *testing.T) { newLeader(t, test.source).run(test.steps...) })
	}
}

// seenSecret returns the metadata of Secret s in a namespace.
func seenSecret(namespace, uid, version string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", UID: types.UID(uid),
		ResourceVersion: version, Labels: labels}}
}

func metaOfCopy(namespace, from, uid, version string) *metav1.PartialObjectMetadata {
	m := seenSecret(namespace, uid, version, map[string]string{v1alpha1.LabelInheritedFrom: from})
	m.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: copies.Hash{Mode: update, Place: copies.PlaceOf(at(namespace), from),
		Content: contentNumber(1)}.String()}
	return m
}

// A cluster-wide watch replaces the watches of namespaces, and begins with a list. The list may be older than what those watches have
// shown. It must not bring back an older version of a source, and a copy that it lacks is not gone.
func TestListsThatAreOlder(t *testing.T) {
	for name, scope := range map[string]copyengine.Scope{
		"INF-I75 in scope Auto, what watches of namespaces have shown stays until a newer list arrives":    copyengine.Auto,
		"INF-I75 in scope Cluster, what watches of namespaces have shown stays until a newer list arrives": copyengine.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, acme(), copyengine.Kind{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: scope})
			sources := copyengine.Watch{Kind: secret, Role: copyengine.SourcesAlone}
			ofCopies := copyengine.Watch{Kind: secret, Role: copyengine.CopiesAlone}
			opted := map[string]string{v1alpha1.LabelPropagate: update}
			stands := func(source, copied bool) {
				t.Helper()
				s.state.Read(func(w *copies.World) {
					if known := w.Sources.At(at("acme")); (known != nil && known.Mode == update) != source || (w.Copies.At(at("a")) != nil) != copied {
						t.Fatalf("source %+v, copy %+v", known, w.Copies.At(at("a")))
					}
				})
			}
			s.apply(copyengine.ObjectSeen{Watch: sources, Object: seenSecret("acme", "s", "5", opted)})
			s.apply(copyengine.ObjectSeen{Watch: ofCopies, Object: metaOfCopy("a", "acme", "u1", "6")})
			old := seenSecret("acme", "s", "3", map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeNone})
			s.apply(copyengine.Listed{Watch: sources, ResourceVersion: "4", Objects: []*metav1.PartialObjectMetadata{old}})
			s.apply(copyengine.ObjectGone{Watch: sources, Object: seenSecret("acme", "s", "4", nil)})
			s.apply(copyengine.Listed{Watch: ofCopies, ResourceVersion: "4"})
			s.apply(copyengine.ObjectGone{Watch: ofCopies, Object: seenSecret("a", "other", "8", nil)})
			stands(true, true)
			s.apply(copyengine.Listed{Watch: ofCopies, ResourceVersion: "9"})
			stands(true, false)
			s.apply(copyengine.Listed{Watch: sources, ResourceVersion: "9"})
			stands(false, false)
		})
	}
}

// When the watch of the whole cluster ends, the State forgets the sources outside of the followed namespaces: nothing reports their changes
// any more.
func TestForgottenElsewhere(t *testing.T) {
	s := newScenario(t, acme(), copyengine.Kind{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: copyengine.Auto})
	s.apply(copyengine.FollowDue{})
	watch := copyengine.Watch{Kind: secret, Role: copyengine.SourcesAlone}
	opted := map[string]string{v1alpha1.LabelPropagate: update}
	s.apply(copyengine.Listed{Watch: watch, ResourceVersion: "5", Objects: []*metav1.PartialObjectMetadata{seenSecret("acme", "s", "5", opted),
		seenSecret("solo", "e", "5", opted)}})
	s.apply(copyengine.WatchChanged{Watch: watch, Status: syncedStatus(secretKind)})
	words := s.apply(copyengine.WatchChanged{Watch: watch, Status: watchset.Status{State: watchset.Forbidden, Missing: []string{"list"}}})
	s.state.Read(func(w *copies.World) {
		if w.Sources.At(at("acme")) == nil || w.Sources.At(at("solo")) != nil || len(words) != 1 || words[0] != "FollowSoon" {
			t.Fatalf("%v, %v; %v", w.Sources.At(at("acme")), w.Sources.At(at("solo")), words)
		}
	})
}

func TestMeasuredChanges(t *testing.T) {
	leading(t, acme()).run(
		done(propagated(at("acme"), 1, update)), shown("queue source Secret acme/s"), startedSource(at("acme"), "read Secret acme/s"),
		answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
		startedSlot(at("a"), "create Secret a/s"), answered(at("a")), startedSlot(at("a1"), "create Secret a1/s"), answered(at("a1")),
		startedSlot(at("b"), "create Secret b/s"), answered(at("b"), "fan-out of Secret ended: create"), shown(),
		grown(acme("a in zeta"), []string{"a", "a1"}, "FollowSoon", "queue namespace a, namespace a1"),
		startedNamespace("a", "queue Secret a/s"), startedNamespace("a1", "queue Secret a1/s"),
		startedSlot(at("a"), "check Secret a/s"), answered(at("a"), "delete Secret a/s"), answered(at("a")),
		startedSlot(at("a1"), "check Secret a1/s"), answered(at("a1"), "delete Secret a1/s"), answered(at("a1"), "MoveEnded"),
	)
}

// Before the POST of a copy is answered, a user removes the copy's label, and the watch lists anew. No watch will show such a copy.
func TestAnAnswerThatIsOlderThanAList(t *testing.T) {
	t.Run("PROP-K11 if a copy loses its label and its watch lists anew, before its POST "+
		"is answered, the next POST finds the copy", func(t *testing.T) {
		newLeader(t, propagated(at("acme"), 1, update)).run(
			startedSource(at("acme"), "read Secret acme/s"), answered(at("acme"), "queue Secret a/s, Secret a1/s, Secret b/s"),
			startedSlot(at("a"), "create Secret a/s"),
			applied(copyengine.Listed{Watch: copyengine.Watch{Kind: secret, Role: copyengine.CopiesAlone}, ResourceVersion: "1000000"}),
			answered(at("a"), "queue Secret a/s"),
			startedSlot(at("a"), "create Secret a/s"),
		)
	})
}
