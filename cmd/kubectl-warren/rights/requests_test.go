package rights

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// requestOf returns a SudoRequest of payments with a reason of Active, and an end.
func requestOf(user string, reason v1alpha1.Reason, end time.Time) v1alpha1.SudoRequest {
	r := v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: strings.ToLower(user + string(reason))}}
	r.Spec.User = user
	active := metav1.Condition{Type: "Active", Status: metav1.ConditionFalse, Reason: string(reason), LastTransitionTime: metav1.Now()}
	if reason == v1alpha1.ReasonGranted || reason == v1alpha1.ReasonNotEnded {
		active.Status = metav1.ConditionTrue
	}
	r.Status.Conditions = []metav1.Condition{active}
	if !end.IsZero() {
		r.Status.EndTime = new(metav1.NewTime(end))
	}
	return r
}

// asked is an API server with tenant payments, where carol and group pay-oncall may ask for sudo. lists are the lists of SudoRequests
// that it was asked for.
type asked struct {
	// bound means that the RoleBinding of the temporary sudoer exists, and without that the LNamespace lists nobody who is eligible.
	bound, without bool
	// onlyTemporary means that the authorizer allows nothing to anybody but the temporary sudoer.
	onlyTemporary bool
	refusal       error
	lists         int
}

func (a *asked) reporter(requests ...v1alpha1.SudoRequest) *Reporter {
	scheme := runtime.NewScheme()
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments"}}
	tenant.Spec.Managers = []v1alpha1.Subject{{Kind: "User", Name: "mia"}}
	if !a.without {
		tenant.Spec.SudoRequests = &v1alpha1.SudoRequests{
			Eligible: []v1alpha1.Subject{{Kind: "User", Name: "carol"}, {Kind: "Group", Name: "pay-oncall"}}}
	}
	root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "payments",
		Annotations: map[string]string{v1alpha1.AnnotationAncestry: "payments"}}}
	objects := []client.Object{tenant, root, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}, Rules: everything}}
	if a.bound {
		objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: grants.RequestsBinding},
			RoleRef:  rbacv1.RoleRef{Kind: kindClusterRole, Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SudoNamespace, Name: "payments"}}})
	}
	for i := range requests {
		objects = append(objects, &requests[i])
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*v1alpha1.SudoRequestList); is {
				a.lists++
				if a.refusal != nil {
					return a.refusal
				}
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if review, is := object.(*authorizationv1.SubjectAccessReview); is {
				review.Status.Allowed = !a.onlyTemporary || review.Spec.User == v1alpha1.TemporarySudoer("payments")
			}
			return nil
		},
	})
	return &Reporter{API: api, Refused: apierrors.IsForbidden,
		Tree:       func(context.Context, string) ([]string, []string, error) { return []string{"payments"}, nil, nil },
		Namespaced: func() (map[schema.GroupResource]bool, error) { return nil, nil }}
}

// access returns the report on payments as text, and what it could not read.
func (a *asked) access(t *testing.T, requests ...v1alpha1.SudoRequest) (text string, unread []string) {
	t.Helper()
	found, err := a.reporter(requests...).Access(t.Context(), "payments", false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := found.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), found.Incomplete
}

func TestWhoHasSudoOnRequestNow(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	until := "until " + end.UTC().Format("15:04Z")
	requests := []v1alpha1.SudoRequest{
		requestOf("carol", v1alpha1.ReasonGranted, end), requestOf("otto", v1alpha1.ReasonGranted, end),
		requestOf("dave", v1alpha1.ReasonPending, time.Time{}), requestOf("erin", v1alpha1.ReasonTimeOver, end),
	}
	t.Run("REQ-A2 kubectl warren access shows until when somebody has sudo on request, also by a group", func(t *testing.T) {
		got, _ := (&asked{bound: true}).access(t, requests...)
		for _, want := range []string{"User carol\n  lists         sudoRequests.eligible\n  on request    cluster-admin (" + until + ")\n",
			"Group pay-oncall\n  lists         sudoRequests.eligible\n  on request    cluster-admin\n",
			"User otto\n  on request    cluster-admin (" + until + ")\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "dave") || strings.Contains(got, "erin") {
			t.Errorf("who has no sudo now is shown:\n%s", got)
		}
	})
	t.Run("REQ-A2 kubectl warren who-can shows in column SUDO until when somebody has it, and then who may ask", func(t *testing.T) {
		found, err := (&asked{bound: true}).reporter(requests...).WhoCan(t.Context(),
			Question{Verb: "get", Resource: "secrets", Namespace: "payments"}, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range found.Subjects {
			got = append(got, h.String()+" "+describeSudo(h.Sudo, h.OnRequest, h.Until))
		}
		want := "User carol " + until + "; User otto " + until + "; Group pay-oncall on-request"
		if strings.Join(got, "; ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
	t.Run("REQ-A2 a right that was not ended at its time is shown as overdue", func(t *testing.T) {
		past := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
		got, _ := (&asked{bound: true}).access(t, requestOf("carol", v1alpha1.ReasonNotEnded, past))
		if want := "(until 2026-03-01T12:30:00Z, overdue)"; !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	})
}

func TestSudoOnRequestForManagers(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	a := &asked{} // as for a manager, who can't list RoleBindings
	requests := []v1alpha1.SudoRequest{requestOf("carol", v1alpha1.ReasonGranted, end), requestOf("dave", v1alpha1.ReasonPending, time.Time{}),
		requestOf("erin", v1alpha1.ReasonDenied, time.Time{})}
	t.Run("REQ-A2 kubectl warren access shows what is granted now to a manager who can't list RoleBindings", func(t *testing.T) {
		got, _ := a.access(t, requests...)
		for _, want := range []string{"on request    cluster-admin (until " + end.UTC().Format("15:04Z") + ")\n", "a granted SudoRequest"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
	t.Run("the requests that are not over", func(t *testing.T) {
		found, err := a.reporter(requests...).Access(t.Context(), "payments", false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range found.OpenRequests() {
			got = append(got, r.User+" "+r.State)
			if (r.Until != nil) != (r.User == "carol") {
				t.Errorf("%+v", r)
			}
		}
		if slices.Sort(got); strings.Join(got, ", ") != "carol Granted, dave Pending" {
			t.Error(got)
		}
	})
}

func TestWhyWithSudoOnRequest(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	until := "until " + end.UTC().Format("15:04Z")
	const via = "ServiceAccount warren-sudo/payments: RoleBinding payments/warren:sudo-requests (ClusterRole cluster-admin)"
	for name, c := range map[string]struct {
		id             Identity
		requests       []v1alpha1.SudoRequest
		line, sentence string
	}{
		"REQ-A4 kubectl warren why has a line for sudo that the person may ask for": {Person("carol"), nil,
			"on-request yes " + via, "carol may, but must ask for sudo first: kubectl sudo request --tenant payments --reason TEXT"},
		"REQ-A4 kubectl warren why has a line for sudo that was granted on request": {Person("carol"),
			[]v1alpha1.SudoRequest{requestOf("carol", v1alpha1.ReasonGranted, end)},
			until + " yes " + via, "carol may, but only with sudo on request of payments, " + until + "."},
		"REQ-A4 kubectl warren why finds what was granted by a group that the question does not name": {Person("otto"),
			[]v1alpha1.SudoRequest{requestOf("otto", v1alpha1.ReasonGranted, end)},
			until + " yes " + via, "otto may, but only with sudo on request of payments, " + until + "."},
		"REQ-A4 kubectl warren why has no such line for others": {Person("dave"),
			[]v1alpha1.SudoRequest{requestOf("carol", v1alpha1.ReasonGranted, end)},
			"", "dave may not, neither without sudo nor with it."},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{bound: true, onlyTemporary: true}
			why, err := a.reporter(c.requests...).Why(t.Context(), c.id, Question{Verb: "get", Resource: "secrets", Namespace: "payments"})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := why.Write(&out); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")[4:]
			got := ""
			if len(lines) > 0 {
				got = strings.Join(strings.Fields(lines[0]), " ")
			}
			if got != c.line || why.Describe() != c.sentence {
				t.Errorf("line %q, sentence %q in\n%s", got, why.Describe(), out.String())
			}
		})
	}
}

func TestWhatReportsAskOfSudoRequests(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "sudorequests"}
	for name, c := range map[string]struct {
		asked  asked
		lists  int
		unread string
	}{
		"REQ-A3 without component requests, kubectl warren access lists no SudoRequests": {asked{without: true}, 0, ""},
		"REQ-A3 kubectl warren access names the SudoRequests that the reader may not list": {
			asked{bound: true, refusal: apierrors.NewForbidden(resource, "", nil)}, 1, "can't list sudorequests in payments"},
		"REQ-A3 where component requests was removed, kubectl warren access reports what it has left": {
			asked{bound: true, refusal: apierrors.NewNotFound(resource, "")}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, unread := c.asked.access(t)
			if c.asked.lists != c.lists || strings.Join(unread, "; ") != c.unread || !strings.Contains(text, "mia") {
				t.Errorf("%d lists, unread %v\n%s", c.asked.lists, unread, text)
			}
		})
	}
}
