package quota

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/budget"
)

// Share is what a namespace may use now, and the limits above it. Its JSON form is an interface that scripts rely on.
type Share struct {
	Namespace string `json:"namespace"`
	// Hard is the share, Counted what the API server admits by, Used what is used.
	Hard    corev1.ResourceList `json:"hard"`
	Counted corev1.ResourceList `json:"counted"`
	Used    corev1.ResourceList `json:"used"`
	// Lacking is what the operator wrote into the share when it could not serve a request; "" if it served all.
	Lacking string `json:"lacking,omitempty"`
	// Told is what the share tells of the limits above it, as they were when it was written last; nil if it tells nothing.
	Told   *budget.Told `json:"told,omitempty"`
	Limits Limits       `json:"limits"`
	// Holds has, for each resource, the sentence that states what holds.
	Holds []string `json:"holds"`
	// Undefaulted are the resources that each container must state, because no LimitRange of the namespace has a default.
	Undefaulted []corev1.ResourceName `json:"undefaulted,omitempty"`
}

// readShare reads the share of a namespace and the limits above it.
func readShare(ctx context.Context, api client.Client, namespace string) (*Share, error) {
	s := &Share{Namespace: namespace, Limits: Limits{}}
	if err := s.readQuota(ctx, api); err != nil {
		return nil, err
	}
	path := []string{namespace}
	object, err := gather.ReadNamespace(ctx, api, namespace)
	if err != nil && !failure.Unavailable(err) {
		return nil, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	if ancestry := object.Annotations[v1alpha1.AnnotationAncestry]; ancestry != "" {
		path = strings.Split(ancestry, "/")
	}
	if err := s.Limits.readSome(ctx, api, path[:1], path); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Hard)) {
		s.Holds = append(s.Holds, s.Describe(key, budget.UnitOf(key)))
	}
	return s, s.readDefaults(ctx, api)
}

// explained is an answer of the API server, in the words of this command.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

// readQuota reads the ResourceQuota that holds the share.
func (s *Share) readQuota(ctx context.Context, api client.Reader) error {
	quota := &corev1.ResourceQuota{}
	err := api.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: budget.QuotaName}, quota)
	switch {
	case apierrors.IsNotFound(err):
		return explained{err, fmt.Sprintf("namespace %s has no share, so no limit of a tree holds in it; if one should, a cluster admin "+
			"finds out by kubectl warren doctor whether component budgets is installed", s.Namespace)}
	case failure.Refused(err):
		return explained{err, fmt.Sprintf("you may not read the share of namespace %s, which its users may: kubectl warren quota shows the "+
			"limits that you may read", s.Namespace)}
	case err != nil:
		return fmt.Errorf("read the share of %s: %w", s.Namespace, err)
	}
	s.Hard, s.Counted, s.Used = quota.Spec.Hard, quota.Status.Hard, quota.Status.Used
	s.Lacking, s.Told = quota.Annotations[v1alpha1.AnnotationLacking], budget.ReadTold(quota.Annotations[v1alpha1.AnnotationLimits])
	return nil
}

// admits reports whether the share has room for an object that needs so much of a resource.
func (s *Share) admits(key corev1.ResourceName, needed resource.Quantity) bool {
	room := s.Counted[key]
	room = room.DeepCopy()
	room.Sub(s.Used[key])
	return room.Cmp(needed) >= 0
}

// Describe states what holds for an object that needs so much of a resource.
func (s *Share) Describe(key corev1.ResourceName, needed resource.Quantity) string {
	return s.describe(key, needed, fmt.Sprintf(": the share grows when more is created; if that is refused: "+
		"kubectl warren quota ask -n %s %s=%s",
		s.Namespace, key, needed.String()))
}

// DescribeUnserved states why there is no room for an object after that was asked for.
func (s *Share) DescribeUnserved(key corev1.ResourceName, needed resource.Quantity) string {
	return s.describe(key, needed, fmt.Sprintf(": the operator made no room for %s within %s, because others wait for it too, or because it "+
		"does not run: try again in a minute, or ask a cluster admin to run kubectl warren doctor", needed.String(), askPatience))
}

// describe states what holds, and next where more can be had.
func (s *Share) describe(key corev1.ResourceName, needed resource.Quantity, next string) string {
	used := fmt.Sprintf("%s: %s used", key, showAmount(s.Used, key))
	limit := s.Limits.findTightest(key)
	if _, counted := s.Counted[key]; !counted {
		return fmt.Sprintf("%s: Kubernetes has not counted the share of %s yet: try again in a few seconds", key, showAmount(s.Hard, key))
	}
	lacking, isLacking := strings.CutPrefix(s.Lacking, string(key)+": ")
	switch {
	case limit != nil:
	case isLacking && !s.admits(key, needed):
		return fmt.Sprintf("%s of a share of %s; %s", used, showAmount(s.Counted, key), lacking)
	default:
		return fmt.Sprintf("%s of a share of %s%s%s", used, showAmount(s.Counted, key), s.describeTold(key), next)
	}
	free, field := limit.Free[key], "a cluster admin to raise spec.limits.hard"
	if limit.Namespace != "" {
		field = "a cluster admin or a sudoer to raise spec.hard"
	}
	switch {
	case free.Sign() <= 0:
		return fmt.Sprintf("%s; %s has used %s of %s: delete something, or ask %s", used, limit, showAmount(limit.Used, key),
			showAmount(limit.Hard, key), field)
	case free.Cmp(needed) < 0:
		next = fmt.Sprintf(", less than %s: delete something, or ask %s", needed.String(), field)
	}
	return fmt.Sprintf("%s of a share of %s; %s has %s of %s free%s", used, showAmount(s.Counted, key), limit, showAmount(limit.Free, key),
		showAmount(limit.Hard, key), next)
}

// describeTold tells of the limit above the namespace, to whom may not read it; "" if the share tells nothing of it.
func (s *Share) describeTold(key corev1.ResourceName) string {
	if s.Told == nil {
		return ""
	}
	if _, has := s.Told.Hard[key]; !has {
		return ""
	}
	return fmt.Sprintf("; at %s the tree had used %s of %s", s.Told.At.Format("2006-01-02 15:04:05Z"), showAmount(s.Told.Used, key),
		showAmount(s.Told.Hard, key))
}

// Write writes what holds, and then the limits that the user may not read.
func (s *Share) Write(w io.Writer) error {
	for _, sentence := range s.Sentences() {
		if _, err := terminal.Fprintf(w, "%s\n", sentence); err != nil {
			return err
		}
	}
	return s.Limits.writeUnread(w)
}
