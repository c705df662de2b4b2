package ui

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

func TestStatusOf(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"not found":           {fmt.Errorf("read: %w", apierrors.NewNotFound(secrets, "x")), http.StatusNotFound},
		"not served":          {invocation.UnservedError{}, http.StatusNotFound},
		"a name of nothing":   {checkName("namespace", "No-Name"), http.StatusNotFound},
		"forbidden":           {fmt.Errorf("read: %w", apierrors.NewForbidden(secrets, "x", errors.New("no right"))), http.StatusForbidden},
		"an unseen namespace": {fmt.Errorf("read: %w", gather.UnseenError("x")), http.StatusForbidden},
		"unauthorized":        {apierrors.NewUnauthorized("no"), http.StatusBadGateway},
		"no connection":       {&url.Error{Op: "Get", URL: "https://x", Err: errors.New("refused")}, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			if got := statusOf(c.err); got != c.want {
				t.Errorf("%v: status %d, want %d", c.err, got, c.want)
			}
		})
	}
}

func TestConditionMarks(t *testing.T) {
	conditions := []metav1.Condition{}
	for _, one := range []struct {
		kind   v1alpha1.ConditionType
		status metav1.ConditionStatus
		failed bool
	}{
		{v1alpha1.ConditionReady, "False", true}, {v1alpha1.ConditionPropagated, "True", false}, {v1alpha1.ConditionMetadataSynced, "Unknown", false},
		{v1alpha1.ConditionHalted, "True", true}, {v1alpha1.ConditionStalled, "False", false},
	} {
		condition := metav1.Condition{Type: string(one.kind), Status: one.status}
		if isFailing(condition) != one.failed {
			t.Errorf("%s %s", one.kind, one.status)
		}
		conditions = append(conditions, condition)
	}
	var page bytes.Buffer
	if err := parseTemplates(&settings{}).ExecuteTemplate(&page, "conditions", conditions); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{`<span class="failed">False, a problem</span>`: 1, `<span class="failed">True, a problem</span>`: 1, "failed": 2} {
		if got := strings.Count(page.String(), text); got != want {
			t.Errorf("%d times %s, want %d:\n%s", got, text, want, &page)
		}
	}
}

func TestHeadings(t *testing.T) {
	for query, want := range map[string]string{
		"do=sub&parent=payments":              "Create a sub-namespace in payments",
		"do=sub":                              "Create a sub-namespace",
		"do=add&list=users&tenant=payments":   "Add a user to payments",
		"do=add&list=sudoers&tenant=payments": "Add a sudoer to payments",
		"do=remove&list=sudoers&tenant=payments&subject=User+bob":       "Take User bob off the sudoers of payments",
		"do=add&list=managers&tenant=payments":                          "",
		"do=remove&list=managers&tenant=payments&subject=User+mia":      "",
		"do=delete&tenant=payments":                                     "",
		"list=users&tenant=payments&subject=User+bob&parent=payments&x": "",
	} {
		asked, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := headingOf(asked); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
