package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// hierarchyValidator checks HierarchyConfigurations. The webhook isn't called for deletions: an outage must not block
// the deletion of a namespace with its contents, and deleting the object doesn't move the namespace.
type hierarchyValidator struct {
	liveView
	ask    authorizer.Asker
	config *config.OperatorConfiguration
	// dryRun writes by dry run: the API server judges the request and keeps nothing.
	dryRun client.Writer
}

// ValidateCreate implements admission.Validator.
func (v *hierarchyValidator) ValidateCreate(ctx context.Context, hc *v1alpha1.HierarchyConfiguration) (admission.Warnings, error) {
	return v.checkHierarchyChange(ctx, v1alpha1.HierarchyConfigurationSpec{}, hc)
}

// ValidateUpdate implements admission.Validator.
func (v *hierarchyValidator) ValidateUpdate(ctx context.Context, old, now *v1alpha1.HierarchyConfiguration) (admission.Warnings, error) {
	return v.checkHierarchyChange(ctx, old.Spec, now)
}

// ValidateDelete implements admission.Validator.
func (v *hierarchyValidator) ValidateDelete(context.Context, *v1alpha1.HierarchyConfiguration) (admission.Warnings, error) {
	return nil, nil
}

func (v *hierarchyValidator) checkHierarchyChange(ctx context.Context, old v1alpha1.HierarchyConfigurationSpec,
	now *v1alpha1.HierarchyConfiguration) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s, err := v.snapshotWith(ctx, now.Namespace, valueOrEmpty(now.Spec.Parent))
	if err != nil {
		return nil, err
	}
	reads := &reads{}
	keys, exists := v.keyRulesFor(ctx, s, reads), v.namespaceExistence(ctx, reads)
	var verdict hierarchyVerdict
	own := append(namespacesOfOwnChain(s, now.Namespace), valueOrEmpty(now.Spec.Parent))
	checkWithinSight(ctx, v.ask, user, own, func(g *visibility) {
		verdict = checkHierarchySpec(s, now.Namespace, old, now.Spec, keys, exists,
			g)
	})
	if reads.err != nil {
		return nil, reads.err
	}
	if len(verdict.problems) > 0 || len(verdict.warnings) > 0 {
		if blind, err := v.refuseBlindly(ctx, user, own, now, verdict); blind != nil || err != nil {
			return nil, cmp.Or(err, kindHierarchy.refusalOfProblems(now.Name, blind))
		}
	}
	switch {
	case len(verdict.problems) > 0:
		return verdict.warnings, kindHierarchy.refusalOfProblems(now.Name, verdict.problems)
	case verdict.unknown != "":
		return verdict.warnings, askToRetry(`the operator has not seen namespace "` + verdict.unknown + `" yet; try again in a second`)
	}
	refused, err := v.checkRequestRights(ctx, user, own, now.Spec.Parent, verdict.requests)
	if err != nil || len(refused) > 0 {
		return verdict.warnings, cmp.Or(err, kindHierarchy.refusalOfProblems(now.Name, refused))
	}
	if verdict.moves {
		verdict.addWarnings(v.dryRunPlacing(ctx, s, now)...)
	}
	return verdict.warnings, nil
}

// dryRunTimeout bounds the dry run, well below the timeout of the webhook: a Warning is worth no longer wait.
const dryRunTimeout = 2 * time.Second

// dryRunPlacing has the API server judge, by a dry run, the write by which the operator will place the namespace. It
// returns the refusal, which the author of the request would otherwise find only in a condition.
func (v *hierarchyValidator) dryRunPlacing(ctx context.Context, s *forest.Snapshot, now *v1alpha1.HierarchyConfiguration) []string {
	change := forest.DesiredChange(s.WithHierarchy(forest.HierarchyOf(now.Namespace, string(now.UID), now.Spec)), now.Namespace)
	if change.Empty() || v.dryRun == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": change.Labels, "annotations": change.Annotations}})
	if err != nil {
		return nil
	}
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	n.Name = now.Namespace
	err = v.dryRun.Patch(ctx, n, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, client.FieldOwner(v1alpha1.OperatorName))
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return nil // the API server did not judge the request itself
	}
	return []string{"the request waits, because the API server refuses to place the namespace: " + policySentenceOf(err.Error())}
}

// policySentenceOf returns the sentence of the policy that refused a request, without the words that the API server
// puts before it.
func policySentenceOf(refusal string) string {
	if _, sentence, found := strings.Cut(refusal, " denied request: "); found {
		return sentence
	}
	return refusal
}

// namespacesOfOwnChain returns the namespace itself, its ancestors by the labels parent, and the namespaces in its
// annotation ancestry. The namespace's users know these names already, because its labels and annotations hold them.
func namespacesOfOwnChain(s *forest.Snapshot, namespace string) []string {
	chain := append(authority.Above(s, namespace), namespace)
	if n := s.Namespace(namespace); n != nil {
		chain = append(chain, strings.Split(n.Annotations[v1alpha1.AnnotationAncestry], "/")...)
	}
	return chain
}

// refuseBlindly answers a user who may not see the namespace that spec.parent names: it returns which rights the user
// lacks. This answer comes first, because any other one would reveal that namespace's state, its tree or its existence.
// It is nil if the user may see the namespace, or lacks no right.
func (v *hierarchyValidator) refuseBlindly(ctx context.Context, user authenticationv1.UserInfo, own []string,
	now *v1alpha1.HierarchyConfiguration, verdict hierarchyVerdict) (field.ErrorList, error) {
	target, seen := valueOrEmpty(now.Spec.Parent), true
	if target == "" {
		return nil, nil
	}
	checkWithinSight(ctx, v.ask, user, nil, func(g *visibility) { seen = g.maySeeNamespace(target) })
	if seen {
		return nil, nil
	}
	return v.checkRequestRights(ctx, user, own, now.Spec.Parent, verdict.requests)
}

// checkRequestRights asks the authorizer the questions of all requests at once. For each field, it returns the first
// right that is missing.
func (v *hierarchyValidator) checkRequestRights(ctx context.Context, user authenticationv1.UserInfo, own []string, parent *string,
	requests []request) (field.ErrorList, error) {
	var questions []authority.Question
	for _, r := range requests {
		questions = append(questions, r.questions...)
	}
	yes, err := v.ask.AskAll(ctx, user, questions)
	if err != nil {
		return nil, err
	}
	var problems field.ErrorList
	checkWithinSight(ctx, v.ask, user, own, func(g *visibility) {
		problems = nil
		answers := yes
		for _, r := range requests {
			if no := slices.Index(answers[:len(r.questions)], false); no >= 0 {
				problems = append(problems, r.problemOfDenial(user.Username, r.questions[no], parent, g))
			}
			answers = answers[len(r.questions):]
		}
	})
	return problems, nil
}

// reads collects the errors of reads that a pure function caused through a callback.
type reads struct{ err error }

func (r *reads) recordReadFailure(err error) bool {
	r.err = errors.Join(r.err, err)
	return err != nil
}

func (v *hierarchyValidator) namespaceExistence(ctx context.Context, reads *reads) func(string) bool {
	return func(name string) bool {
		n, err := v.readNamespace(ctx, name)
		return !reads.recordReadFailure(err) && n != nil
	}
}

// isKeyUndelegated reports whether only a cluster admin may propagate or override a key: the configuration says so, or
// the key names who pays.
func (v *hierarchyValidator) isKeyUndelegated(key string) bool {
	c := v.config
	return c.Inheritance.Undelegated.Match(key) || c.Billing.NamespaceLabels.Has(key)
}

// keyRulesFor returns the rules for keys. They read the HierarchyConfiguration of each ancestor at most once.
func (v *hierarchyValidator) keyRulesFor(ctx context.Context, s *forest.Snapshot, reads *reads) keyRules {
	read := map[string]*forest.Hierarchy{}
	return keyRules{
		inheritLabel:      matchOrNone(s.Rules().InheritLabel),
		inheritAnnotation: matchOrNone(s.Rules().InheritAnnotation),
		undelegated:       v.isKeyUndelegated,
		declared: func(namespace string) *forest.Hierarchy {
			if h, ok := read[namespace]; ok {
				return h
			}
			hc, err := readHierarchyOf(ctx, v.live, namespace)
			read[namespace] = &forest.Hierarchy{}
			if !reads.recordReadFailure(err) && hc != nil {
				read[namespace] = forest.HierarchyOf(namespace, string(hc.UID), hc.Spec)
			}
			return read[namespace]
		},
	}
}

func matchOrNone(match func(string) bool) func(string) bool {
	if match == nil {
		return func(string) bool { return false }
	}
	return match
}
