package distribute

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestRollout(t *testing.T) {
	number, percent := intstr.FromInt32(2), intstr.FromString("34%")
	f := woods("d1", "d2", "d3 early=yes")
	r, err := readRollout(v1alpha1.DistributionRollout{Partition: &number, BatchSize: &percent,
		First: &metav1.LabelSelector{MatchLabels: map[string]string{"early": "yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"d2", "d1", "d3"}
	r.Order(f, names)
	if got := strings.Join(names, " "); got != "d3 d1 d2" {
		t.Errorf("DIST-D65: order %s", got)
	}
	if got := r.Open(names, 3); len(got) != 1 || got[0] != "d3" {
		t.Errorf("DIST-D63: partition 2 of 3 opens %v", got)
	}
	if got := r.Open([]string{"d2"}, 4); len(got) != 0 {
		t.Errorf("DIST-D64: fewer outdated than the partition holds back opens %v", got)
	}
	if got := r.Batch(3); got != 2 {
		t.Errorf("34 %% of 3 is a batch of %d", got)
	}
	r.partition = &percent
	if got := r.Open(names, 3); len(got) != 1 {
		t.Errorf("34 %% of 3, rounded up, opens %v", got)
	}
	none, err := readRollout(v1alpha1.DistributionRollout{})
	if err != nil || len(none.Open(names, 3)) != 3 || none.Batch(3) != 3 || none.Batched() {
		t.Errorf("no roll-out: %v", err)
	}
}
