package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/budget"
)

// ListUndefaulted returns the keys of a share for which a pod that does not state them is refused, because no LimitRange of the namespace
// has a default.
func ListUndefaulted(hard corev1.ResourceList, ranges []corev1.LimitRange) (all []corev1.ResourceName) {
	for _, key := range slices.Sorted(maps.Keys(hard)) {
		if needed, isLimit := budget.StatedBy(key); needed != "" && !slices.ContainsFunc(ranges, func(r corev1.LimitRange) bool {
			return slices.ContainsFunc(r.Spec.Limits, func(item corev1.LimitRangeItem) bool {
				defaults := item.DefaultRequest // the API server fills it from default and min
				if isLimit {
					defaults = item.Default
				}
				_, has := defaults[needed]
				return has && item.Type == corev1.LimitTypeContainer
			})
		}) {
			all = append(all, key)
		}
	}
	return all
}

// readDefaults finds for which resources of the share pods have no defaults. If the user may not list LimitRanges, it finds none.
func (s *Share) readDefaults(ctx context.Context, api client.Reader) error {
	if len(ListUndefaulted(s.Hard, nil)) == 0 {
		return nil
	}
	var ranges []corev1.LimitRange
	err := gather.ListEach(ctx, api, &corev1.LimitRangeList{}, func(o client.Object) { ranges = append(ranges, *o.(*corev1.LimitRange)) },
		client.InNamespace(s.Namespace))
	switch {
	case failure.Refused(err):
		return nil
	case err != nil:
		return fmt.Errorf("list LimitRanges in %s: %w", s.Namespace, err)
	}
	s.Undefaulted = ListUndefaulted(s.Hard, ranges)
	return nil
}

// DescribeUndefaulted tells of pods that are refused because neither they nor a LimitRange state what the share counts; "" if there are
// none.
func (s *Share) DescribeUndefaulted() string {
	if len(s.Undefaulted) == 0 {
		return ""
	}
	var keys []string
	for _, key := range s.Undefaulted {
		keys = append(keys, string(key))
	}
	return fmt.Sprintf("%s: a pod that does not set this in each container is refused (must specify), because no LimitRange in %s has "+
		"defaults: set it, or ask a sudoer or a cluster admin for a LimitRange", strings.Join(keys, ", "), s.Namespace)
}

// FindShare reads the share of a namespace; nil if it has none, or the user may not read it.
func FindShare(ctx context.Context, api client.Client, namespace string) (*Share, error) {
	share, err := readShare(ctx, api, namespace)
	if failure.Unavailable(err) {
		return nil, nil
	}
	return share, err
}

// Sentences are what holds for each resource, and which pods are refused for want of defaults.
func (s *Share) Sentences() []string {
	all := slices.Clone(s.Holds)
	if text := s.DescribeUndefaulted(); text != "" {
		all = append(all, text)
	}
	return all
}
