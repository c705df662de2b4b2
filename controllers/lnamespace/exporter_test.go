package lnamespace

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// statuses is an API server with the tenants a, b and c, all with one condition BillingExported. It refuses the status of one of them, and
// records the others that are written. It refuses to show Leases.
type statuses struct {
	client.Client
	refused  string
	written  []string
	exported []metav1.Condition
}

func (s *statuses) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, name := range []string{"a", "b", "c"} {
		list.(*v1alpha1.LNamespaceList).Items = append(list.(*v1alpha1.LNamespaceList).Items,
			v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
				Status: v1alpha1.LNamespaceStatus{Conditions: s.exported}})
	}
	return nil
}

func (s *statuses) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, key.Name, nil)
}

func (s *statuses) Status() client.SubResourceWriter { return statusWriter{api: s} }

type statusWriter struct {
	client.SubResourceWriter
	api *statuses
}

func (w statusWriter) Patch(_ context.Context, tenant client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	if tenant.GetName() == w.api.refused {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "lnamespaces"}, tenant.GetName(), nil)
	}
	w.api.written = append(w.api.written, tenant.GetName())
	return nil
}

func TestReportEach(t *testing.T) {
	t.Run("BILL-35 if the API server refuses the status of one tenant, the others still get NotRunning", func(t *testing.T) {
		api := &statuses{refused: "a"}
		w := &ExporterWatch{Tenants: api, Report: &Reporter{Client: api}, Bills: true}
		err := w.reportEach(t.Context(), func(status *v1alpha1.LNamespaceStatus, generation int64) {
			v1alpha1.SetCondition(&status.Conditions, generation, v1alpha1.ConditionBillingExported, metav1.ConditionFalse,
				v1alpha1.ReasonNotRunning, "no billing exporter runs")
		})
		if !apierrors.IsForbidden(err) || !slices.Equal(api.written, []string{"b", "c"}) {
			t.Errorf("written are %v, and the error is %v", api.written, err)
		}
	})
}

func TestUnseenExporter(t *testing.T) {
	t.Run("BILL-88 an operator that may not read the exporter's Lease says so once, and leaves it at that where an exporter writes Exported",
		func(t *testing.T) {
			api := &statuses{}
			w := &ExporterWatch{Tenants: api, Live: api, Report: &Reporter{Client: api}, Bills: true}
			for range 3 {
				if _, err := w.reportExporter(t.Context()); err != nil {
					t.Fatal(err)
				}
				v1alpha1.SetCondition(&api.exported, 1, v1alpha1.ConditionBillingExported, metav1.ConditionTrue, v1alpha1.ReasonExported, "")
			}
			if !slices.Equal(api.written, []string{"a", "b", "c"}) {
				t.Errorf("written are %v", api.written)
			}
		})
}

func TestSummariseConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		access v1alpha1.Reason
		want   metav1.ConditionStatus
	}{
		"ACC-D13 Ready does not wait for a controller that is switched off": {v1alpha1.ReasonDisabled, metav1.ConditionTrue},
		"a conflict of access objects makes it False":                       {v1alpha1.ReasonConflict, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.LNamespaceStatus{}
			v1alpha1.SetCondition(&status.Conditions, 1, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonCreated, "")
			v1alpha1.SetCondition(&status.Conditions, 1, v1alpha1.ConditionAccessReady, metav1.ConditionUnknown, tc.access, "")
			summariseConditions(status, 1)
			if ready := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady); ready.Status != tc.want {
				t.Errorf("Ready is %s, %s", ready.Status, ready.Reason)
			}
		})
	}
}
