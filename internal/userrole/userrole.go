// Package userrole reads the ClusterRole that users are bound to, with all ClusterRoles that are aggregated into it, from an API server.
// The operator and kubectl warren vet then check that role by package rolevetting.
package userrole

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// Read reads a ClusterRole by name. For a missing one, the error is NotFound.
func Read(ctx context.Context, from client.Reader, name string) (*rolevetting.Role, error) {
	role := &rbacv1.ClusterRole{}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, role); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", name, err)
	}
	read := &rolevetting.Role{Name: role.Name, UID: role.UID, Rules: role.Rules}
	seen := map[string]bool{name: true} // Kubernetes aggregates no role into itself, either
	for waiting := []*rbacv1.ClusterRole{role}; len(waiting) > 0; waiting = waiting[1:] {
		parts, err := aggregatedRoles(ctx, from, waiting[0])
		if err != nil {
			return nil, err
		}
		for i := range parts {
			part := &parts[i]
			if seen[part.Name] {
				continue
			}
			seen[part.Name] = true
			aggregated := part.AggregationRule != nil
			read.Contributors = append(read.Contributors, rolevetting.Contributor{Name: part.Name, Aggregated: aggregated, Rules: part.Rules})
			if aggregated {
				waiting = append(waiting, part)
			}
		}
	}
	slices.SortFunc(read.Contributors, func(a, b rolevetting.Contributor) int { return cmp.Compare(a.Name, b.Name) })
	return read, nil
}

// aggregatedRoles returns the ClusterRoles that the selectors of a role's aggregation rule choose.
func aggregatedRoles(ctx context.Context, from client.Reader, role *rbacv1.ClusterRole) ([]rbacv1.ClusterRole, error) {
	if role.AggregationRule == nil {
		return nil, nil
	}
	var chosen []rbacv1.ClusterRole
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("reading the aggregation rule of ClusterRole %s: %w", role.Name, err)
		}
		list := &rbacv1.ClusterRoleList{}
		if err := from.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, fmt.Errorf("listing the ClusterRoles aggregated into ClusterRole %s: %w", role.Name, err)
		}
		chosen = append(chosen, list.Items...)
	}
	return chosen, nil
}
