package distribute

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// How much of each list the status holds, so that it stays below 64 KiB.
const (
	maxConflicts, maxFailures, maxNotFound, maxPlanned, maxNamed = 100, 20, 20, 50, 10
	maxMessage                                                   = 256 // bytes
)

// Failure explains why the API server refused a write.
type Failure struct {
	Reason  v1alpha1.Reason
	Message string
	// Final reports that a retry of the same write will fail too, until a person changes something.
	Final bool
}

// Result is a review's plan for one namespace, and why the last write there failed.
type Result struct {
	Namespace string
	Action
	Failure *Failure
	// Unmarked reports that the copy has other marks than it should have.
	Unmarked bool
	copy     *Copy // the copy there; nil if there is none
}

// hasFailed reports whether the API server refuses what is to be done with the copy. In a conflict, the other object is
// the news.
func (r Result) hasFailed() bool { return r.Failure != nil && r.State != InConflict }

// Review is the result of planning all targets of a distribution together.
type Review struct {
	// Results holds all targets, and copies to be removed in other namespaces, in order of the namespace's name.
	Results            []Result
	NotFound, Replaced []string
	// Named is the record of which namespaces the names mean.
	Named Named
	// Resource is what kubectl calls the kind, such as "networkpolicies.networking.k8s.io".
	Resource string
	// Checked reports that obstacles are known.
	Checked bool
	// Unobserved is why the copies can't be watched; "" if they can.
	Unobserved string
	// Unwatched is a clause that says why the obstacles aren't watched; "" if they are, or are about to be.
	Unwatched string
	// Admitted is the Distribution.Check that has passed, or "".
	Admitted string
}

// Status returns the status for a review. was is the status reported before: unchanged conditions keep their times, and
// status.deletionPolicy stays until every copy has the marks of the new policy.
func (d *Distribution) Status(r Review, was *v1alpha1.ResourceDistributionStatus) v1alpha1.ResourceDistributionStatus {
	s := v1alpha1.ResourceDistributionStatus{
		ObservedGeneration: d.Generation, DeletionPolicy: was.DeletionPolicy, Admitted: r.Admitted,
		NotFound: r.NotFound[:min(len(r.NotFound), maxNotFound)], Replaced: r.Replaced[:min(len(r.Replaced), maxNotFound)],
		Named: r.Named.buildRecord(d.Targets, d.written), Conditions: slices.Clone(was.Conditions),
	}
	if d.Template != nil {
		s.ResourceHash = d.Template.Content
	}
	if d.Problem != "" || r.Unobserved != "" {
		keepNumbers(&s, was)
	} else {
		d.countResults(r, &s)
	}
	d.setConditions(r, &s)
	return s
}

// keepNumbers copies the counts and lists of the old status, because nothing can be counted now.
func keepNumbers(s, was *v1alpha1.ResourceDistributionStatus) {
	s.Targets, s.Current, s.Outdated, s.Missing, s.Conflicts, s.Failed = was.Targets, was.Current, was.Outdated, was.Missing,
		was.Conflicts, was.Failed
	s.ConflictingNamespaces, s.FailedNamespaces = was.ConflictingNamespaces, was.FailedNamespaces
	s.NotFound, s.Replaced, s.Named = was.NotFound, was.Replaced, cmp.Or(s.Named, was.Named)
}

func (d *Distribution) countResults(r Review, s *v1alpha1.ResourceDistributionStatus) {
	inForce := true
	for _, one := range r.Results {
		inForce = inForce && !one.Unmarked
		if one.hasFailed() && len(s.FailedNamespaces) < maxFailures {
			s.FailedNamespaces = append(s.FailedNamespaces, v1alpha1.FailedNamespace{
				Name: one.Namespace, Reason: one.Failure.Reason, Message: text.Cut(one.Failure.Message, maxMessage),
			})
		}
		if one.State == None {
			continue
		}
		s.Targets++
		switch {
		case one.hasFailed():
			s.Failed++
		case one.State == Current:
			s.Current++
		case one.State == Outdated:
			s.Outdated++
		case one.State == Missing:
			s.Missing++
		case one.State == InConflict:
			s.Conflicts++
			if len(s.ConflictingNamespaces) < maxConflicts {
				s.ConflictingNamespaces = append(s.ConflictingNamespaces, v1alpha1.ConflictingNamespace{
					Name: one.Namespace, Reason: one.Conflict.Reason, By: one.Conflict.By,
				})
			}
		}
	}
	if inForce {
		s.DeletionPolicy = d.Deletion
	}
	if d.Suspend {
		s.Plan = planOf(r.Results)
	}
}

// planOf returns the namespaces by the action that would be taken there.
func planOf(results []Result) *v1alpha1.DistributionPlan {
	p := &v1alpha1.DistributionPlan{}
	for _, one := range results {
		to := &p.Unchanged
		switch one.Verb {
		case Create:
			to = &p.Create
		case Update, Remark:
			to = &p.Update
		case Adopt:
			to = &p.Adopt
		case Overwrite:
			to = &p.Overwrite
		case Delete, HandBack, Unlock:
			to = &p.Delete
		default:
			switch one.State {
			case InConflict:
				to = &p.Conflict
			case Missing: // the copy would be created if no other target were in conflict
				to = &p.Create
			case None:
				continue
			}
		}
		to.Count++
		if len(to.Namespaces) < maxPlanned {
			to.Namespaces = append(to.Namespaces, one.Namespace)
		}
	}
	return p
}

func (d *Distribution) setConditions(r Review, s *v1alpha1.ResourceDistributionStatus) {
	v1alpha1.KeepConditions(&s.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionConflictFree)
	status, reason, message := d.readyCondition(r, s)
	v1alpha1.SetCondition(&s.Conditions, d.Generation, v1alpha1.ConditionReady, status, reason, message)
	switch {
	case d.Problem != "" || r.Unobserved != "" || !r.Checked && s.Conflicts == 0:
		v1alpha1.SetCondition(&s.Conditions, d.Generation, v1alpha1.ConditionConflictFree, metav1.ConditionUnknown, v1alpha1.ReasonNotChecked,
			"it is not known whether other objects have the names of copies: condition Ready says why the operator cannot check this now")
	case s.Conflicts > 0:
		v1alpha1.SetCondition(&s.Conditions, d.Generation, v1alpha1.ConditionConflictFree, metav1.ConditionFalse, v1alpha1.ReasonConflict,
			d.conflictMessage(r, s))
	default:
		v1alpha1.SetCondition(&s.Conditions, d.Generation, v1alpha1.ConditionConflictFree, metav1.ConditionTrue, v1alpha1.ReasonNoConflict,
			"no other object has the name of a copy")
	}
	stalled := v1alpha1.Reason("")
	switch reason {
	case v1alpha1.ReasonConflict, v1alpha1.ReasonInvalidResource, v1alpha1.ReasonKindNotAllowed, v1alpha1.ReasonNamespaceNotFound,
		v1alpha1.ReasonNamespaceReplaced:
		stalled = reason
	case v1alpha1.ReasonFailed:
		if slices.ContainsFunc(r.Results, func(one Result) bool { return one.Failure != nil && one.Failure.Final }) {
			stalled = v1alpha1.ReasonRejected
		}
	}
	if stalled == "" {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == string(v1alpha1.ConditionStalled) })
		return
	}
	v1alpha1.SetCondition(&s.Conditions, d.Generation, v1alpha1.ConditionStalled, metav1.ConditionTrue, stalled, message)
}

// readyCondition returns the condition Ready: the first reason that applies.
func (d *Distribution) readyCondition(r Review, s *v1alpha1.ResourceDistributionStatus) (metav1.ConditionStatus, v1alpha1.Reason, string) {
	removing := slices.ContainsFunc(r.Results, func(one Result) bool { return one.State == None && one.Verb != Nothing })
	unmarked := slices.ContainsFunc(r.Results, func(one Result) bool { return one.Unmarked })
	switch {
	case d.Problem != "":
		return metav1.ConditionFalse, d.Problem, text.Cut(d.Why, 1024)
	case r.Unobserved != "":
		return metav1.ConditionFalse, v1alpha1.ReasonNotObserved, r.Unobserved
	case d.Suspend:
		return metav1.ConditionFalse, v1alpha1.ReasonSuspended, "spec.suspend is true: nothing is written; status.plan lists what is due"
	case s.Conflicts > 0 && d.AllOrNothing():
		return metav1.ConditionFalse, v1alpha1.ReasonConflict, d.conflictMessage(r, s)
	case len(s.FailedNamespaces) > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonFailed, failureMessage(r, s)
	case len(s.Replaced) > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonNamespaceReplaced,
			fmt.Sprintf("%s of spec.targets %s not served, because another namespace has taken the name since: %s; "+
				"to serve the present namespaces, take their names out of spec.targets and put them in again",
				text.Count(len(r.Replaced), "name", "names"),
				isOrAre(len(r.Replaced)), strings.Join(s.Replaced[:min(maxNamed, len(s.Replaced))], ", "))
	case len(s.NotFound) > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotFound,
			fmt.Sprintf("%s of spec.targets %s: %s; create each, or take its name out",
				text.Count(len(r.NotFound), "namespace", "namespaces"), isOrAre(len(r.NotFound))+" missing",
				strings.Join(s.NotFound[:min(maxNamed, len(s.NotFound))], ", "))
	case s.Missing > 0, s.Outdated > 0, removing, unmarked:
		return metav1.ConditionFalse, v1alpha1.ReasonProgressing, fmt.Sprintf("%d of %d copies are current", s.Current, s.Targets)
	case s.Targets == 0:
		return metav1.ConditionTrue, v1alpha1.ReasonNoTargets, "spec.targets selects no namespace"
	case s.Conflicts > 0:
		return metav1.ConditionTrue, v1alpha1.ReasonSkipped, d.conflictMessage(r, s)
	}
	return metav1.ConditionTrue, v1alpha1.ReasonDistributed, fmt.Sprintf("all %d copies are current", s.Targets)
}

// failureMessage reports in how many namespaces a copy could not be written or removed, and why not in the first one.
func failureMessage(r Review, s *v1alpha1.ResourceDistributionStatus) string {
	failures, did := 0, "written or removed"
	for _, one := range r.Results {
		if one.hasFailed() {
			failures++
		}
	}
	switch int(s.Failed) {
	case failures:
		did = "written"
	case 0:
		did = "removed"
	}
	first := s.FailedNamespaces[0]
	return fmt.Sprintf("the copy in %s could not be %s; the first failure, in namespace %s: %s",
		text.Count(failures, "namespace", "namespaces"), did, first.Name, first.Message)
}

// conflictMessage reports how many namespaces are in conflict, and how to list them all.
func (d *Distribution) conflictMessage(r Review, s *v1alpha1.ResourceDistributionStatus) string {
	var names []string
	for _, one := range s.ConflictingNamespaces[:min(maxNamed, len(s.ConflictingNamespaces))] {
		names = append(names, one.Name)
	}
	more := ""
	if int(s.Conflicts) > len(names) {
		more = fmt.Sprintf(" and %d more", int(s.Conflicts)-len(names))
	}
	message := fmt.Sprintf("%s: %s%s; rename or remove them, or choose another spec.conflictPolicy; kubectl get %s -A --field-selector "+
		"metadata.name=%s -l '%s!=%s' lists all",
		d.Template.TakenIn(int(s.Conflicts)), strings.Join(names, ", "), more,
		r.Resource, d.Template.Name, v1alpha1.LabelDistributedBy, d.Name)
	if r.Unwatched != "" {
		message += "; " + r.Unwatched
	}
	return message
}

// TakenIn returns the sentence that this number of namespaces have somebody else's object in the slot of a copy.
func (t *Template) TakenIn(namespaces int) string {
	have := "have"
	if namespaces == 1 {
		have = "has"
	}
	return fmt.Sprintf("%s already %s a %s %s that is no copy of this ResourceDistribution, or is being deleted",
		text.Count(namespaces, "namespace", "namespaces"), have, t.Kind.Kind, t.Name)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func joinSorted(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }

// asReturned returns a status as the API server would return it, so that both can be compared.
func asReturned(s v1alpha1.ResourceDistributionStatus) v1alpha1.ResourceDistributionStatus {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // fails only for channels and functions
	}
	same := v1alpha1.ResourceDistributionStatus{}
	if err := json.Unmarshal(data, &same); err != nil {
		panic(err)
	}
	return same
}
