package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

const (
	update = v1alpha1.ModeUpdate
	create = v1alpha1.ModeCreate
	none   = v1alpha1.ModeNone
)

// decision is a row of a table: what is known, and what is planned for Secret s in a namespace.
type decision struct {
	reason string
	forest *forest.Snapshot // acme() if nil
	facts  []fact
	in     string // a1 if empty
	verb   copies.Verb
	from   string // the namespace of the action's source
	mode   string // of the hash; empty if the action has no hash
	why    v1alpha1.Reason
}

func (d decision) run(t *testing.T) {
	t.Helper()
	if d.forest == nil {
		d.forest = acme()
	}
	if d.in == "" {
		d.in = "a1"
	}
	w := world(d.forest, d.facts...)
	want := copies.Action{Verb: d.verb, Reason: d.why}
	if d.from != "" {
		want.Source = at(d.from)
	}
	if d.mode != "" {
		want.Hash = copies.Hash{Mode: d.mode, Place: copies.PlaceOf(at(d.in), d.from), Content: w.Sources.At(at(d.from)).Content}
	}
	if diff := cmp.Diff(want, w.Plan(at(d.in))); diff != "" {
		t.Errorf("%s\nPlan(%s): -want, +got:\n%s", d.reason, at(d.in), diff)
	}
}

func facts(all ...fact) []fact { return all }

// The rows of the table "stands in N, wanted, action" in the specification.
func TestPlan(t *testing.T) {
	elsewhere := source("zeta", update)
	cases := map[string]decision{
		"NothingStandsWanted": {reason: "a POST", facts: facts(source("acme", update)), verb: copies.Create, from: "acme", mode: update},
		"NothingStandsWantedCreate": {reason: "a POST in mode create", facts: facts(source("acme", create)), verb: copies.Create,
			from: "acme", mode: create},
		"NothingStandsUnwanted": {reason: "nothing to do", facts: facts(elsewhere)},
		"HashEqual":             {reason: "settled", facts: facts(source("acme", update), copied("a1", "acme", update))},
		"HashDifferent": {
			reason: "one PUT", facts: facts(source("acme", update, changed), copied("a1", "acme", update)), verb: copies.Update,
			from: "acme", mode: update,
		},
		"OtherSourceOnThePath": {
			reason: "one PUT in place", facts: facts(source("acme", update), source("a", update), copied("a1", "a", update)), verb: copies.Update,
			from: "acme", mode: update,
		},
		"LowerTakesOver": {
			reason: "where the upper one is none, in place too", facts: facts(source("acme", none), source("a", update),
				copied("a1", "acme", update)),
			verb: copies.Update, from: "a", mode: update,
		},
		"OffThePathWanted": {
			reason: "away first, although another is wanted", facts: facts(source("acme", update), elsewhere, copied("a1", "zeta", update)),
			verb: copies.Delete, from: "zeta",
		},
		"OffThePathUnwanted": {reason: "away", facts: facts(elsewhere, copied("a1", "zeta", update)), verb: copies.Delete, from: "zeta"},
		"OffThePathGone": {reason: "away, and nobody asks for a source that left the path", facts: facts(copied("a1", "zeta", update)),
			verb: copies.Delete, from: "zeta"},
		"LeftTheForest": {reason: "nothing of ours stays in mode update", in: "solo",
			facts: facts(source("acme", update), copied("solo", "acme", update)), verb: copies.Delete, from: "acme"},
		"LeftTheForestCreate": {reason: "in mode create it stays", in: "solo",
			facts: facts(source("acme", create), copied("solo", "acme", create))},
		"SourceNone": {reason: "opted out", facts: facts(source("acme", none), copied("a1", "acme", update)),
			verb: copies.Delete, from: "acme"},
		"SourceExcluded": {reason: "excluded", facts: facts(source("acme", update, excluded), copied("a1", "acme", update)),
			verb: copies.Delete, from: "acme"},
		"SourceUnselecting": {reason: "selects no more", facts: facts(source("acme", update, selecting("tier=web")),
			copied("a1", "acme", update)), verb: copies.Delete, from: "acme"},
		"KeptCreate": {reason: "its content belongs to its namespace", facts: facts(source("acme", create, changed),
			copied("a1", "acme", create))},
		"KeptUnwanted":    {reason: "and stays when the source goes", facts: facts(copied("a1", "acme", create))},
		"KeptMoved":       {reason: "or moves away", facts: facts(elsewhere, copied("a1", "zeta", create))},
		"KeptOtherCreate": {reason: "or another in mode create comes", facts: facts(source("acme", create), copied("a1", "zeta", create))},
		"KeptToUpdate": {reason: "overwritten once the source says update",
			facts: facts(source("acme", update), copied("a1", "acme", create)), verb: copies.Update, from: "acme", mode: update},
		"KeptOtherUpdate": {reason: "a stranger to another source", facts: facts(source("acme", update), copied("a1", "a", create)),
			from: "acme", why: v1alpha1.ReasonConflict},
		"UpdateToCreate": {reason: "written once more, for the mark", facts: facts(source("acme", create), copied("a1", "acme", update)),
			verb: copies.Update, from: "acme", mode: create},
		"NotOurs": {reason: "a conflict", facts: facts(source("acme", update), copied("a1", "acme", update, forged)), from: "acme",
			why: v1alpha1.ReasonConflict},
		"NotOursCreate":     {reason: "satisfied", facts: facts(source("acme", create), copied("a1", "acme", update, forged))},
		"NotOursUnwanted":   {reason: "never touched", facts: facts(copied("a1", "acme", update, forged))},
		"NotOursOffThePath": {reason: "never touched, wherever it claims to be from", facts: facts(copied("a1", "zeta", update, forged))},
		"ASourceStands": {reason: "a lower source is no copy", in: "a", facts: facts(source("acme", update), source("a", update)),
			from: "acme", why: v1alpha1.ReasonConflict},
		"ASourceStandsCreate": {reason: "and satisfies", in: "a", facts: facts(source("acme", create), source("a", update))},
		"TopmostWins": {reason: "policy from above can't be shadowed", facts: facts(source("acme", update), source("a", update)),
			verb: copies.Create, from: "acme", mode: update},
		"Drift": {reason: "put right", facts: facts(source("acme", update), copied("a1", "acme", update, drifted)), verb: copies.Update,
			from: "acme", mode: update},
		"NotIntoItself": {reason: "a source reaches those below, not its own namespace", in: "acme", facts: facts(source("acme", update))},
		"NotUpwards":    {reason: "nor those above", in: "acme", facts: facts(source("a", update))},
		"Vanishing":     {reason: "no PUT to what goes", facts: facts(source("acme", update, changed), copied("a1", "acme", update, vanishing))},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanFrozen(t *testing.T) {
	stands := copied("a1", "acme", update)
	broken := func(more ...string) *forest.Snapshot {
		return planted(append([]string{"acme root of tmpl", "a in acme", "a1 in a", "zeta root"}, more...)...)
	}
	cases := map[string]decision{
		"InvalidSource": {reason: "a typo deletes nothing", facts: facts(source("acme", "Update", invalid), stands)},
		"InvalidUpperSource": {reason: "nor writes, lower sources included", facts: facts(source("acme", update, invalid),
			source("a", update, changed), copied("a1", "a", update))},
		"InvalidAndMissing": {reason: "nor is anything made", facts: facts(source("acme", update, invalid), source("a", update))},
		"InvalidLowerSource": {reason: "an upper valid source is not concerned", facts: facts(source("acme", update, changed),
			source("a", update, invalid), stands), verb: copies.Update, from: "acme", mode: update},
		"InvalidButMovedAway": {reason: "what left the path goes all the same, or the barrier would stand for ever",
			facts: facts(source("acme", update, invalid), copied("a1", "zeta", update)), verb: copies.Delete, from: "zeta"},
		"TerminatingSource":    {reason: "left as it is", facts: facts(source("acme", update, going, excluded), stands)},
		"TerminatingSourceNew": {reason: "nothing new is written from it", facts: facts(source("acme", update, going))},
		"UnreadSource": {reason: "what has not been read can't be compared", facts: facts(source("acme", update, unread), stands),
			verb: copies.Look, from: "acme"},
		"UnreadSourceNew": {reason: "it is read where a copy is wanted", facts: facts(source("acme", update, unread)),
			verb: copies.Look, from: "acme"},
		"UnreadSourceOfCreate": {reason: "a copy in mode create belongs to its namespace, whatever the source holds",
			facts: facts(source("acme", create, unread), copied("a1", "acme", create))},
		"UnreadSourceGoing": {reason: "what is going is not read", facts: facts(source("acme", update, unread, going))},
		"Halted": {reason: "a halted namespace is left alone", forest: planted("acme root", "a in gone", "a1 in a"),
			facts: facts(source("acme", update), stands)},
		"HaltedByTerminating": {reason: "sources that vanish with their namespace are no deletion", forest: planted("acme root terminating",
			"a in acme", "a1 in a"), facts: facts(stands)},
		"TerminatingNamespace": {reason: "nothing is written to a namespace that goes", forest: acme("a1 in a terminating"),
			facts: facts(source("acme", update), copied("a1", "zeta", update))},
		"Protected": {reason: "nor to a protected one", forest: acme("a1 in a tenancy.warren.dev/protected=true"),
			facts: facts(source("acme", update), copied("a1", "zeta", update))},
		"TemplateMissing": {reason: "what came from templates that can't be judged stays", forest: broken(),
			facts: facts(copied("a1", "tmpl", update))},
		"TemplateTerminating": {reason: "likewise", forest: broken("tmpl template terminating"), facts: facts(copied("a1", "tmpl", update))},
		"TemplateUnknownOwn": {reason: "the tree's own sources go on", forest: broken(), facts: facts(source("acme", update, changed), stands),
			verb: copies.Update, from: "acme", mode: update},
		"TemplateUnknownGone": {reason: "and go", forest: broken(), facts: facts(source("acme", none), stands),
			verb: copies.Delete, from: "acme"},
		"TemplateUnknownMoved": {reason: "so does what came from another tree", forest: broken(), facts: facts(copied("a1", "zeta", update)),
			verb: copies.Delete, from: "zeta"},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanLooksBeforeItDeletes(t *testing.T) {
	stands := copied("a1", "acme", update)
	cases := map[string]decision{
		"Missing":   {reason: "the watch may be behind", facts: facts(stands), verb: copies.Look, from: "acme"},
		"Confirmed": {reason: "gone, or opted out", facts: facts(stands, lost("acme", copies.Confirmed)), verb: copies.Delete, from: "acme"},
		"Doubtful":  {reason: "still opted in, or gone with its namespace", facts: facts(stands, lost("acme", copies.Doubtful))},
		"LostAgain": {
			reason: "a look at an earlier source of that name is worth nothing",
			facts:  facts(stands, lost("acme", copies.Confirmed), source("acme", update), func(w *copies.World) { w.DeleteSource(at("acme")) }),
			verb:   copies.Look, from: "acme",
		},
		"KindForgotten": {
			reason: "nor is one from before the kind was forgotten",
			facts:  facts(stands, lost("acme", copies.Confirmed), func(w *copies.World) { w.ForgetKind(secret) }, kind(copies.OptIn, true), stands),
			verb:   copies.Look, from: "acme",
		},
		"StillThere": {
			reason: "what is in sight is not lost", facts: facts(source("acme", update), stands, lost("acme", copies.Confirmed)),
		},
		"LowerTakesOver": {
			reason: "a lower source takes over only once the upper one is known to be gone", facts: facts(source("a", update), stands),
			verb: copies.Look, from: "acme",
		},
		"LowerTakesOverConfirmed": {
			reason: "then in place", facts: facts(source("a", update), stands, lost("acme", copies.Confirmed)), verb: copies.Update,
			from: "a", mode: update,
		},
		"LowerTakesOverDoubtful": {reason: "and not while that is in doubt", facts: facts(source("a", update), stands,
			lost("acme", copies.Doubtful))},
		"KeptNeedsNone": {reason: "a copy in mode create asks nothing", facts: facts(copied("a1", "acme", create))},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanAfterAStart(t *testing.T) {
	s := source("acme", update)
	cases := map[string]decision{
		"Clean": {reason: "nothing is read or written", facts: facts(s, copied("a1", "acme", update, unknown))},
		"Foreign": {reason: "another manager owns a field: read it", facts: facts(s, copied("a1", "acme", update, unknown, foreign)),
			verb: copies.Inspect, from: "acme", mode: update},
		"OtherLabels": {reason: "labels differ: read it", facts: facts(s, copied("a1", "acme", update, unknown, relabelled)),
			verb: copies.Inspect, from: "acme", mode: update},
		"Marked": {reason: "a key of ours that no copy carries: write at once",
			facts: facts(s, copied("a1", "acme", update, unknown, marked)), verb: copies.Update, from: "acme", mode: update},
		"HashDifferent": {reason: "no need to read what is written anyway", facts: facts(source("acme", update, changed),
			copied("a1", "acme", update, unknown, foreign)), verb: copies.Update, from: "acme", mode: update},
		"Later": {reason: "once our write's digest is known it alone tells",
			facts: facts(s, copied("a1", "acme", update, foreign, relabelled, marked))},
		"Create": {reason: "what belongs to the namespace may differ",
			facts: facts(source("acme", create), copied("a1", "acme", create, unknown, foreign, relabelled, marked))},
		"Barrier": {
			reason: "reading may lead to a write, so it waits like one", facts: facts(s, copied("a1", "acme", update, unknown, foreign),
				copiedTo(other("a1"), "zeta", update)),
			from: "acme", why: v1alpha1.ReasonWaitingForRemoval,
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}
