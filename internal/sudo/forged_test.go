package sudo

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// begun returns a model of an approved request for which the operator is about to make the timer.
func begun(t *testing.T) *model {
	m := asked(decide("mia", v1alpha1.SudoApprove))
	if !m.step(t) || m.Request.Status.StartTime == nil || m.Timer != nil {
		t.Fatalf("not begun: %v", m.acts)
	}
	return m
}

func TestForgedTimers(t *testing.T) {
	for name, forge := range map[string]func(*batchv1.Job){
		"REQ-X1 a Job of somebody else that has the name of a timer and lives longer makes way for the operator's": func(j *batchv1.Job) {
			j.Spec.TTLSecondsAfterFinished = new(int32(1 << 30))
		},
		"REQ-X1 so is one that never ends":                               func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = nil },
		"REQ-X1 so is one that a controller of somebody else completes":  func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/mine") },
		"REQ-X1 so is one that does not end with the LNamespace":         func(j *batchv1.Job) { j.OwnerReferences = nil },
		"REQ-X1 so is one that a finalizer holds":                        func(j *batchv1.Job) { j.Finalizers = []string{"example.com/held"} },
		"REQ-X1 so is one that pods must complete":                       func(j *batchv1.Job) { j.Spec.Completions = new(int32(1)) },
		"REQ-X1 so is one without the labels by which it would be found": func(j *batchv1.Job) { j.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := begun(t)
			m.Timer = BuildTimer(m.Request, m.Tenant, 10*time.Minute)
			m.Timer.UID, m.Timer.CreationTimestamp = "forged", metav1.NewTime(m.Now)
			forge(m.Timer)
			m.settle(t)
			end := m.Request.Status.EndTime
			if m.active() != "True Granted" || m.Timer.UID == "forged" || !end.Equal(new(metav1.NewTime(noon.Add(10*time.Minute)))) {
				t.Errorf("Active is %s by timer %s until %v", m.active(), m.Timer.UID, end)
			}
		})
	}
}

func TestLengthenedTimer(t *testing.T) {
	t.Run("REQ-X2 the operator ends a right whose timer somebody has lengthened, and reports no later end", func(t *testing.T) {
		m := asked(decide("mia", v1alpha1.SudoApprove)).settle(t)
		m.Timer.Spec.TTLSecondsAfterFinished = new(int32(86400))
		m.settle(t)
		if !m.Request.Status.EndTime.Equal(new(metav1.NewTime(noon.Add(10 * time.Minute)))) {
			t.Errorf("ends at %v", m.Request.Status.EndTime)
		}
		if m.wait(10*time.Minute + grace).settle(t); m.active() != "False TimeOver" || m.Binding != nil {
			t.Errorf("Active is %s, binding %v", m.active(), m.Binding)
		}
	})
}

func TestForgedRole(t *testing.T) {
	t.Run("REQ-X3 a Role of somebody else that has the name of a grant's is not bound", func(t *testing.T) {
		m := asked(decide("mia", v1alpha1.SudoApprove))
		for m.Role == nil {
			m.step(t)
		}
		m.Role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}}}
		if m.settle(t); m.active() != "True Granted" || len(m.Role.Rules[0].ResourceNames) != 1 {
			t.Errorf("Active is %s, rules %v", m.active(), m.Role.Rules)
		}
	})
}

func TestLongFinalizers(t *testing.T) {
	t.Run("REQ-X4 a report stays short however many finalizers hold a right", func(t *testing.T) {
		m := asked(decide("mia", v1alpha1.SudoApprove)).settle(t)
		held := strings.Split(strings.Repeat("example.com/held ", 1000), " ")
		m.Binding.Finalizers, m.Role.Finalizers = held, held
		m.decide("carol", v1alpha1.SudoEnd)
		if m.settle(t); len(m.message()) > 4096 || m.active() != "True NotEnded" {
			t.Errorf("Active is %s, with a message of %d characters", m.active(), len(m.message()))
		}
	})
}

func TestLeftover(t *testing.T) {
	binding := func(namespace, uid string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b",
			Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: uid}}}
	}
	m := asked(decide("mia", v1alpha1.SudoApprove))
	bindings := []metav1.PartialObjectMetadata{binding("payments", "tenant"), binding("warren-sudo", "")}
	if left := FindLeftover(m.Tenant, bindings); left != "" {
		t.Error(left)
	}
	t.Run("REQ-X5 nothing is granted while a RoleBinding of an earlier LNamespace binds the temporary sudoer, too", func(t *testing.T) {
		m.Leftover = FindLeftover(m.Tenant, append(bindings, binding("lost", "earlier")))
		if m.settle(t); m.active() != "False GroupInUse" || !strings.Contains(m.message(), "RoleBinding lost/b") || m.Binding != nil {
			t.Errorf("Active is %s: %s", m.active(), m.message())
		}
		m.Leftover = ""
		if m.settle(t); m.active() != "True Granted" {
			t.Errorf("Active is %s", m.active())
		}
	})
}
