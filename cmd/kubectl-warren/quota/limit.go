package quota

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// Limit is the budget of a tenant, or a HierarchicalResourceQuota. Its JSON form is an interface that scripts rely on.
type Limit struct {
	// Kind is LNamespace or HierarchicalResourceQuota; "" if the user may not read the limits of the namespace or tenant called Name.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	v1alpha1.BudgetStatus
	// Reason is that of the condition that reports whether the limit holds.
	Reason string `json:"reason,omitempty"`
}

// String is how messages call the limit.
func (l *Limit) String() string {
	switch {
	case l.Kind == "":
		return "limit of " + l.Name + ": you may not read it"
	case l.Namespace == "":
		return "tenant " + l.Name
	}
	return l.Kind + " " + l.Namespace + "/" + l.Name
}

// Limits are the limits that a user can find.
type Limits []*Limit

func (all *Limits) addTenant(object client.Object) {
	tenant := object.(*v1alpha1.LNamespace)
	l := &Limit{Kind: "LNamespace", Name: tenant.Name}
	if enforced := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionBudgetEnforced); enforced != nil {
		l.Reason = enforced.Reason
	}
	switch {
	case tenant.Status.Budget != nil:
		l.BudgetStatus = *tenant.Status.Budget
	case tenant.Spec.Limits != nil:
		l.Hard = corev1.ResourceList(tenant.Spec.Limits.Hard)
	}
	if len(l.Hard) > 0 {
		*all = append(*all, l)
	}
}

func (all *Limits) addQuota(object client.Object) {
	hrq := object.(*v1alpha1.HierarchicalResourceQuota)
	l := &Limit{Kind: "HierarchicalResourceQuota", Namespace: hrq.Namespace, Name: hrq.Name, BudgetStatus: hrq.Status.BudgetStatus}
	if ready := v1alpha1.FindCondition(hrq.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		l.Reason = ready.Reason
	}
	if l.Hard == nil {
		l.Hard = corev1.ResourceList(hrq.Spec.Hard)
	}
	*all = append(*all, l)
}

// readAll lists all limits. If tenant names a tree, or the user may not list all, it reads those of that tree, or of the trees that the
// user can find.
func readAll(ctx context.Context, inv *invocation.Invocation, api client.Client, tenant string) (Limits, error) {
	all := Limits{}
	if tenant == "" {
		err := gather.ListEach(ctx, api, &v1alpha1.LNamespaceList{}, all.addTenant)
		if err == nil {
			err = all.listQuotas(ctx, api, "")
		}
		if !failure.Refused(err) {
			return all, err
		}
	}
	own, err := inv.FindOwn(ctx, tenant)
	if err != nil {
		return nil, err
	}
	tenants, namespaces := sets.New[string](), []string{}
	for _, namespace := range own {
		if tenants.Insert(namespace.Tenant); !namespace.Unread {
			namespaces = append(namespaces, namespace.Name)
		}
	}
	all = Limits{}
	return all, all.readSome(ctx, api, sets.List(tenants.Delete("")), namespaces)
}

// listQuotas adds the HierarchicalResourceQuotas in a namespace, or in all of them. The API server serves none without component budgets.
func (all *Limits) listQuotas(ctx context.Context, api client.Reader, namespace string) error {
	return client.IgnoreNotFound(gather.ListEach(ctx, api, &v1alpha1.HierarchicalResourceQuotaList{}, all.addQuota,
		client.InNamespace(namespace)))
}

// readSome adds the budgets of some tenants, and the HierarchicalResourceQuotas in some namespaces.
func (all *Limits) readSome(ctx context.Context, api client.Reader, tenants, namespaces []string) error {
	add := func(name string, err error) error {
		if err != nil && !failure.Refused(err) {
			return fmt.Errorf("read the limits of %s: %w", name, err)
		}
		unread := slices.ContainsFunc(*all, func(l *Limit) bool { return l.Kind == "" && l.Name == name })
		if err != nil && !unread {
			*all = append(*all, &Limit{Name: name})
		}
		return nil
	}
	for _, name := range tenants {
		tenant := &v1alpha1.LNamespace{}
		if err := add(name, client.IgnoreNotFound(api.Get(ctx, client.ObjectKey{Name: name}, tenant))); err != nil {
			return err
		}
		all.addTenant(tenant)
	}
	for _, name := range namespaces {
		if err := add(name, all.listQuotas(ctx, api, name)); err != nil {
			return err
		}
	}
	return nil
}

// findTightest returns the limit that has the least free of a resource; nil if none is known.
func (all Limits) findTightest(key corev1.ResourceName) (found *Limit) {
	for _, l := range all {
		if free, known := l.Free[key]; known && (found == nil || free.Cmp(found.Free[key]) < 0) {
			found = l
		}
	}
	return found
}

// Write writes the limits as a table, and then those that the user may not read.
func (all Limits) Write(w io.Writer) error {
	if !slices.ContainsFunc(all, func(l *Limit) bool { return l.Kind != "" }) {
		return all.writeNone(w)
	}
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "LIMIT\tRESOURCE\tHARD\tUSED\tFREE\tREASON")
	for _, l := range all {
		for _, key := range slices.Sorted(maps.Keys(l.Hard)) {
			terminal.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", l, key, showAmount(l.Hard, key), showAmount(l.Used, key), showAmount(l.Free, key),
				tree.OrNone(l.Reason))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return all.writeUnread(w)
}

// writeNone writes what to do where the user can find no limit, in place of an empty table.
func (all Limits) writeNone(w io.Writer) error {
	if _, err := terminal.Fprintf(w, "You may read no limit of these trees:\n"); err != nil {
		return err
	}
	if err := all.writeUnread(w); err != nil {
		return err
	}
	_, err := terminal.Fprintf(w, "What one namespace may use now: kubectl warren quota -n %s. A manager may read the limits of the tenant.\n",
		all[0].Name)
	return err
}

func (all Limits) writeUnread(w io.Writer) (err error) {
	for _, l := range all {
		if l.Kind == "" && err == nil {
			_, err = terminal.Fprintf(w, "%s\n", l)
		}
	}
	return err
}

func showAmount(list corev1.ResourceList, key corev1.ResourceName) string {
	quantity, known := list[key]
	if !known {
		return "<unknown>"
	}
	return quantity.String()
}
