package ui

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
)

// tenantPage is the body of the page of a tenant.
type tenantPage struct {
	Name string
	// Drawing is that of the tenant's tree; nil where the forest of the pages does not have the tree.
	Drawing *graph.Drawing
	// Tenant is nil where the caller may not read it.
	Tenant *v1alpha1.LNamespace
	Lists  []listPart
	Access *rights.Access
	// Requests are the SudoRequests that are not over.
	Requests []rights.OpenRequest
	// Own are sentences about what the caller may do and may not.
	Own    []string
	Events []describe.Event
	// EventsLeftOut is how many older Events there are.
	EventsLeftOut int
	Sudo          *sudoHistory
}

// listPart is one of the three lists of a tenant.
type listPart struct {
	Title, List string
	Subjects    []v1alpha1.Subject
	// Changeable reports whether the page offers to add entries, and to remove them.
	Changeable bool
}

func (v *server) serveTenant(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	frame := v.newFrame("Tenant "+name, name)
	page := &tenantPage{Name: name}
	err := checkName("tenant", name)
	if err == nil {
		err = v.readTenantPage(r.Context(), page, &frame.Unread)
	}
	frame.Body = page
	v.writeFrame(w, "tenant", frame, err)
}

func (v *server) readTenantPage(ctx context.Context, page *tenantPage, unread *[]string) error {
	api, err := v.newReading().Connect()
	if err != nil {
		return err
	}
	tenant := &v1alpha1.LNamespace{}
	switch err := api.Get(ctx, client.ObjectKey{Name: page.Name}, tenant); {
	case failure.Refused(err):
		*unread = append(*unread, "you may not read LNamespace "+page.Name)
	case err != nil:
		return err
	default:
		page.Tenant = tenant
		page.Lists = []listPart{
			{Title: "Users", List: "users", Subjects: tenant.Spec.Users}, {Title: "Managers", List: "managers", Subjects: tenant.Spec.Managers},
			{Title: "Sudoers", List: "sudoers", Subjects: tenant.Spec.Sudoers},
		}
		offered, err := v.isOffered(ctx, page.Name, changesLists(page.Name))
		if err != nil {
			return err
		}
		for i := range page.Lists { // managers are for cluster admins to choose
			page.Lists[i].Changeable = offered && page.Lists[i].List != "managers"
		}
	}
	if tree := v.follower.Book().Page().Forest.Tree(page.Name); tree != nil {
		page.Drawing = tree.Draw(graph.Options{About: graph.About{Context: v.place}, Depth: -1})
	} else {
		*unread = append(*unread, "the tree of "+page.Name+" is not among those that these pages show")
	}
	if page.Access = v.readAccess(ctx, page.Name, unread); page.Access != nil {
		page.showRequests(page.Access.OpenRequests(), unread)
	}
	if page.Own, err = v.readOwnRights(ctx, page.Name); err != nil {
		return err
	}
	if page.Events, page.EventsLeftOut, err = readTenantEvents(ctx, api, page.Name, unread); err != nil {
		return err
	}
	page.Sudo = v.readSudoHistory(page.Name, page.Events)
	return nil
}

// maxRequests is how many SudoRequests are shown at most: the newest.
const maxRequests = 100

func (p *tenantPage) showRequests(open []rights.OpenRequest, unread *[]string) {
	p.Requests = open[:min(len(open), maxRequests)]
	if more := len(open) - maxRequests; more > 0 {
		*unread = append(*unread, fmt.Sprintf("%d older requests for sudo are left out: kubectl sudo list shows all", more))
	}
}

// changesLists is the question whether somebody may change the lists of a tenant.
func changesLists(tenant string) rights.Question {
	return rights.Question{Verb: "patch", Group: v1alpha1.GroupVersion.Group, Resource: "lnamespaces", Name: tenant}
}

// createsSubNamespaces is the question whether somebody may create sub-namespaces of a namespace.
func createsSubNamespaces(namespace string) rights.Question {
	return rights.Question{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "subnamespaces",
		Namespace: namespace}
}

// isOffered reports whether the pages offer what needs a right: the caller has it, may have it, or has it by sudo of
// the tenant.
func (v *server) isOffered(ctx context.Context, tenant string, right rights.Question) (bool, error) {
	reporter, err := rights.NewReporter(v.newReading().Invocation)
	if err != nil {
		return false, err
	}
	if answer, err := reporter.CallerMay(ctx, right); err != nil || answer != rights.No {
		return err == nil, err
	}
	if tenant == "" || *v.inv.Flags.Impersonate != "" {
		return false, nil
	}
	_, answer, err := reporter.Raise(ctx, tenant, right)
	return answer == rights.Yes, err
}

// readOwnRights asks the API server what the caller may do with a tenant, and returns a sentence for each answer.
func (v *server) readOwnRights(ctx context.Context, tenant string) ([]string, error) {
	reporter, err := rights.NewReporter(v.newReading().Invocation)
	if err != nil {
		return nil, err
	}
	var sentences []string
	ours := v1alpha1.GroupVersion.Group
	for _, one := range []struct {
		what  string
		right rights.Question
	}{
		{"read LNamespace " + tenant, rights.Question{Verb: "get", Group: ours, Resource: "lnamespaces", Name: tenant}},
		{"change the lists of LNamespace " + tenant, changesLists(tenant)},
		{"create sub-namespaces in " + tenant, createsSubNamespaces(tenant)},
		{"list subnamespaces in " + tenant, rights.Question{Verb: "list", Group: ours, Resource: "subnamespaces", Namespace: tenant}},
		{"list rolebindings in " + tenant, rights.Question{Verb: "list", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: tenant}},
	} {
		answer, err := reporter.CallerMay(ctx, one.right)
		if err != nil {
			return nil, err
		}
		may := map[rights.Answer]string{rights.Yes: "you may ", rights.No: "you may not ",
			rights.Unknown: "not known whether you may "}
		sentences = append(sentences, may[answer]+one.what)
	}
	return sentences, nil
}

// readTenantEvents returns the Events about an LNamespace, the newest last. Events about objects without a namespace
// are in namespace default.
func readTenantEvents(ctx context.Context, api client.Reader, name string,
	unread *[]string) (newest []describe.Event, leftOut int, err error) {
	var events []describe.Event
	fields := client.MatchingFields{"involvedObject.kind": "LNamespace", "involvedObject.name": name}
	err = gather.ListEach(ctx, api, &corev1.EventList{}, func(object client.Object) {
		events = append(events, describe.EventOf(object.(*corev1.Event)))
	}, client.InNamespace(metav1.NamespaceDefault), fields, describe.EventPage)
	switch {
	case failure.Refused(err):
		*unread = append(*unread, "you may not list Events in default: those about the LNamespace are not shown")
	case err != nil && !apierrors.IsNotFound(err):
		return nil, 0, err
	}
	newest, leftOut = describe.Newest(events)
	return newest, leftOut, nil
}
