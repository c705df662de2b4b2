// Package vetting_test changes the ClusterRole that users have, as a cluster admin and their tools do. It checks that the operator and
// kubectl warren vet report it. All cases look at that one role, so they run one after the other.
package vetting_test

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

var world *devcluster.World

func TestVetting(t *testing.T) { suite.Run(t, "Vetting") }

// The cases are serial, and so run in the process that starts the operator: they restart it.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	plugins, err := devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	world, err = devcluster.Start(ctx, devcluster.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(world.Stop)
	world.Plugins = plugins
}, func() {})

// finding is what vet -o json says of one right.
type finding struct {
	Severity, Message string
	ClusterRoles      []string
}

// vet runs the plugin as the cluster admin and returns what it found, and its exit code.
func vet(ctx context.Context, args ...string) ([]finding, int) {
	GinkgoHelper()
	out, problems, code := world.Kubectl(ctx, controlplane.Admin, append([]string{"warren", "vet", "-o", "json"}, args...)...)
	var answer struct {
		Kind, ClusterRole string
		Findings          []finding
	}
	Expect(json.Unmarshal([]byte(out), &answer)).To(Succeed(), "%s%s", out, problems)
	Expect(answer.Kind).To(Equal("Vetting"))
	return answer.Findings, code
}

// counted reads the metric: the numbers of dangerous and of new rights. It returns nil before the operator's first check.
func counted(ctx context.Context) func() ([]float64, error) {
	return func() ([]float64, error) {
		const name = "warren_user_role_findings"
		metrics, err := world.Operator.Metrics(ctx)
		if err != nil || !metrics.Has(name, nil) {
			return nil, err
		}
		return []float64{
			metrics.Value(name, map[string]string{"severity": "danger"}), metrics.Value(name, map[string]string{"severity": "new"}),
		}, nil
	}
}

// accessReady reads the condition AccessReady of a tenant: its status, reason and message.
func accessReady(ctx context.Context, tenant string) func() (metav1.Condition, error) {
	return func() (metav1.Condition, error) {
		lns := &v1alpha1.LNamespace{}
		if err := world.Admin().Get(ctx, client.ObjectKey{Name: tenant}, lns); err != nil {
			return metav1.Condition{}, err
		}
		if c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady); c != nil {
			return *c, nil
		}
		return metav1.Condition{}, nil
	}
}

// events are the Events about changes of a ClusterRole: type and message.
func events(ctx context.Context, role string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &corev1.EventList{}
		of := client.MatchingFields{
			"involvedObject.kind": "ClusterRole", "involvedObject.name": role, "reason": string(v1alpha1.ReasonUserRoleChanged),
		}
		if err := world.Admin().List(ctx, list, client.InNamespace(metav1.NamespaceDefault), of); err != nil {
			return nil, err
		}
		var told []string
		for _, e := range list.Items {
			told = append(told, e.Type+": "+e.Message)
		}
		return told, nil
	}
}
