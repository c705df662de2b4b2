package ui

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
)

// namespacePage is the body of the page of a namespace.
type namespacePage struct {
	*describe.Namespace
	Way    []string
	Keys   []describe.Inherited
	Quotas []quotaRow
	// Access is nil where the namespace is in no tenant's tree, or the report on its rights failed.
	Access *rights.Access
	// MayCreate reports whether the page offers to create a sub-namespace.
	MayCreate bool
}

// quotaRow is one resource of a ResourceQuota.
type quotaRow struct{ Quota, Resource, Used, Hard string }

func (v *server) serveNamespace(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	frame := v.newFrame("Namespace "+name, name)
	body, unread, err := v.readNamespacePage(r.Context(), name)
	frame.Body, frame.Unread = body, unread
	v.writeFrame(w, "namespace", frame, err)
}

func (v *server) readNamespacePage(ctx context.Context, name string) (*namespacePage, []string, error) {
	if err := checkName("namespace", name); err != nil {
		return nil, nil, err
	}
	reading := v.newReading()
	found, err := describe.Read(ctx, reading.Invocation, name, "") // the page may not read the configuration
	if err != nil {
		return nil, nil, err
	}
	api, err := reading.Connect()
	if err != nil {
		return nil, nil, err
	}
	page := &namespacePage{Namespace: found, Way: v.wayTo(name)}
	unread := reading.describeUnread()
	page.Keys, err = readKeys(ctx, api, found)
	if err := noteUnread(&unread, "read namespace "+name, err); err != nil {
		return nil, nil, err
	}
	page.Quotas, err = readQuotas(ctx, api, name)
	if err := noteUnread(&unread, "list resourcequotas in "+name, err); err != nil {
		return nil, nil, err
	}
	if found.Root != "" {
		page.Access = v.readAccess(ctx, found.Root, &unread)
	}
	page.MayCreate, err = v.isOffered(ctx, found.Root, createsSubNamespaces(name))
	return page, unread, err
}

// noteUnread adds to unread what the user may not do, or what doesn't exist. It returns all other errors.
func noteUnread(unread *[]string, what string, err error) error {
	switch {
	case failure.Refused(err):
		*unread = append(*unread, "you may not "+what)
	case apierrors.IsNotFound(err):
		*unread = append(*unread, "can't "+what+": "+failure.Describe(err))
	default:
		return err
	}
	return nil
}

// readAccess returns the report on who has rights in a tenant's tree; nil where it fails. It adds to unread what the
// report lacks, or why it fails.
func (v *server) readAccess(ctx context.Context, tenant string, unread *[]string) *rights.Access {
	reading := v.newReading()
	reporter, err := rights.NewReporter(reading.Invocation)
	if err == nil {
		var access *rights.Access
		if access, err = reporter.Access(ctx, tenant, false); err == nil {
			*unread = append(append(*unread, reading.describeUnread()...), boundAccess(access)...)
			return access
		}
	}
	*unread = append(*unread, "the rights in this namespace: "+failure.Describe(err))
	return nil
}

// maxSubjects and maxVia bound the table of rights: whoever may write RoleBindings decides how many subjects and
// bindings there are.
const (
	maxSubjects = 1000
	maxVia      = 20
)

// boundAccess removes subjects and bindings beyond maxSubjects and maxVia, and returns sentences about what it has
// removed.
func boundAccess(access *rights.Access) (leftOut []string) {
	const all = ": kubectl warren access shows all"
	if more := len(access.Subjects) - maxSubjects; more > 0 {
		access.Subjects = access.Subjects[:maxSubjects]
		leftOut = append(leftOut, fmt.Sprintf("%d more subjects with rights are left out", more)+all)
	}
	cut := false
	for i := range access.Subjects {
		entry := &access.Subjects[i]
		cut = cut || len(entry.Via) > maxVia
		entry.Via = entry.Via[:min(len(entry.Via), maxVia)]
	}
	if cut {
		leftOut = append(leftOut, fmt.Sprintf("of each subject's bindings, only the first %d are shown", maxVia)+all)
	}
	return leftOut
}

// readKeys returns the labels and annotations of a namespace, each with where it was set.
func readKeys(ctx context.Context, api client.Reader, described *describe.Namespace) ([]describe.Inherited, error) {
	namespace, err := gather.ReadNamespace(ctx, api, described.Name)
	if err != nil {
		return nil, err
	}
	var all []describe.Inherited
	for _, keys := range []struct {
		kind   string
		values map[string]string
	}{{"label", namespace.Labels}, {"annotation", namespace.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(keys.values)) {
			one := describe.Inherited{Kind: keys.kind, Key: key, Value: keys.values[key], From: "this namespace"}
			if i := slices.IndexFunc(described.Inherited, func(i describe.Inherited) bool { return i.Kind == one.Kind && i.Key == key }); i >= 0 {
				one.From = described.Inherited[i].From
			} else if domain, _, _ := strings.Cut(key, "/"); strings.HasSuffix(domain, v1alpha1.Domain) {
				one.From = "the tree, by Warren"
			} else if strings.HasSuffix(domain, "kubernetes.io") {
				one.From = "Kubernetes"
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func readQuotas(ctx context.Context, api client.Reader, namespace string) ([]quotaRow, error) {
	var rows []quotaRow
	err := gather.ListEach(ctx, api, &corev1.ResourceQuotaList{}, func(object client.Object) {
		quota := object.(*corev1.ResourceQuota)
		for _, resource := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			used, hard := quota.Status.Used[resource], quota.Status.Hard[resource]
			rows = append(rows, quotaRow{quota.Name, string(resource), used.String(), hard.String()})
		}
	}, client.InNamespace(namespace))
	return rows, err
}
