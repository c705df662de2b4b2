package lnamespace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestLastBilled(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) *metav1.Time { return &metav1.Time{Time: created.AddDate(0, 0, n)} }
	entry := func(n int, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: day(n), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const billing, users = `{"f:spec":{"f:billing":{".":{},"f:costCenter":{}}}}`, `{"f:spec":{"f:users":{}}}`
	status := entry(9, billing)
	status.Subresource = "status"
	cases := map[string]struct {
		before *v1alpha1.BillingStatus
		fields []metav1.ManagedFieldsEntry
		want   int // days after it was made
	}{
		"nothing is known":                     {},
		"as it was made":                       {fields: []metav1.ManagedFieldsEntry{entry(0, billing)}},
		"never billed, edited since":           {fields: []metav1.ManagedFieldsEntry{entry(3, users)}},
		"changed since":                        {fields: []metav1.ManagedFieldsEntry{entry(2, billing), entry(5, users)}, want: 2},
		"changed by two":                       {fields: []metav1.ManagedFieldsEntry{entry(2, billing), entry(4, billing)}, want: 4},
		"taken away by the last who wrote":     {before: &v1alpha1.BillingStatus{CostCenter: "1"}, fields: []metav1.ManagedFieldsEntry{entry(5, users)}, want: 5},
		"a status doesn't count":               {fields: []metav1.ManagedFieldsEntry{entry(1, billing), status}, want: 1},
		"an entry without fields or time":      {fields: []metav1.ManagedFieldsEntry{{Time: day(7)}, {FieldsV1: metav1.NewFieldsV1(billing)}}},
		"fields that nobody can read any more": {fields: []metav1.ManagedFieldsEntry{entry(7, `[]`), entry(8, `{"f:spec":1}`)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *day(0), ManagedFields: c.fields}}
			lns.Status.Billing = c.before
			if got := lastBilled(lns); !got.Equal(day(c.want)) {
				t.Errorf("got %s, want %s", got, day(c.want))
			}
		})
	}
}
