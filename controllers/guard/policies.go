package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/manifests"
)

// sight holds the policies and bindings that one look found, by their names without the prefix. A missing one has no
// entry.
type sight struct {
	policies  map[string]*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings  map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	hidden    map[string]bool        // names that the operator may not read
	resources []schema.GroupResource // of the configured kinds that are served
}

func newSight() *sight {
	return &sight{
		policies: map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{},
		bindings: map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		hidden:   map[string]bool{},
	}
}

func (s *sight) readPolicy(ctx context.Context, live client.Reader, p manifests.Policy) error {
	found := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	there, err := s.readObject(ctx, live, p.Name, found)
	if err != nil {
		return fmt.Errorf("reading policy %s: %w", manifests.Prefix+p.Name, err)
	}
	if there {
		s.policies[p.Name] = found
	}
	for _, b := range p.Bindings {
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		there, err := s.readObject(ctx, live, b.Name, binding)
		if err != nil {
			return fmt.Errorf("reading binding %s: %w", manifests.Prefix+b.Name, err)
		}
		if there {
			s.bindings[b.Name] = binding
		}
	}
	return nil
}

func (s *sight) readObject(ctx context.Context, live client.Reader, name string, into client.Object) (there bool, err error) {
	err = live.Get(ctx, client.ObjectKey{Name: manifests.Prefix + name}, into)
	if apierrors.IsForbidden(err) { // a policy that can't be read counts as missing
		s.hidden[name] = true
		return false, nil
	}
	return err == nil, client.IgnoreNotFound(err)
}

// findGap returns why a policy is not fully in force, or can't be checked; "" if it is in force.
func (s *sight) findGap(p manifests.Policy) string {
	found := s.policies[p.Name]
	if found == nil {
		return s.isAbsent("it", p.Name)
	}
	for _, binding := range p.Bindings {
		name, b := binding.Name, s.bindings[binding.Name]
		switch {
		case b == nil:
			return s.isAbsent("binding "+manifests.Prefix+name, name)
		case b.Spec.PolicyName != manifests.Prefix+p.Name:
			return fmt.Sprintf("binding %s belongs to policy %s instead: apply config/policy", manifests.Prefix+name, b.Spec.PolicyName)
		case !slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny):
			return fmt.Sprintf("binding %s doesn't deny (validationActions: %s): apply config/policy", manifests.Prefix+name, describeActions(b))
		}
	}
	if !p.ListsKinds {
		return ""
	}
	var unlisted []string
	for _, r := range s.resources {
		if !coversWrites(found, r) {
			unlisted = append(unlisted, r.String())
		}
	}
	if len(unlisted) == 0 {
		return ""
	}
	slices.Sort(unlisted)
	return fmt.Sprintf("it doesn't list %s, which the configuration names: apply what `manager manifests --config FILE` prints",
		strings.Join(slices.Compact(unlisted), ", "))
}

func (s *sight) isAbsent(what, name string) string {
	if s.hidden[name] {
		return what + " may not be read: apply config/rbac"
	}
	return what + " is missing: apply config/policy"
}

func describeActions(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string {
	var words []string
	for _, action := range b.Spec.ValidationActions {
		words = append(words, string(action))
	}
	return strings.Join(words, ", ")
}

// coversWrites reports whether one rule of a policy matches create, update and delete of a resource.
func coversWrites(p *admissionregistrationv1.ValidatingAdmissionPolicy, r schema.GroupResource) bool {
	if p.Spec.MatchConstraints == nil {
		return false
	}
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update,
		admissionregistrationv1.Delete}
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		for _, write := range writes {
			if !hasItem(rule.Operations, write, admissionregistrationv1.OperationAll) {
				return false
			}
		}
		// A rule for one version would miss writes in another.
		return hasItem(rule.APIGroups, r.Group, "*") && hasItem(rule.APIVersions, "*", "*") &&
			(hasItem(rule.Resources, r.Resource, "*") || slices.Contains(rule.Resources, "*/*"))
	})
}

func hasItem[T comparable](list []T, item, everything T) bool {
	return slices.Contains(list, item) || slices.Contains(list, everything)
}
