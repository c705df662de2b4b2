// Package guard_test shows how the operator watches over the admission policies, on a real control plane. It refuses to run under another
// account, and reports policies that are not in force and requests that its own cage refused.
//
// A number such as SEC-X7 in the name of a test says that all of that row of docs/behaviour was seen. A test that shows only
// a part of its row has the number in a comment.
package guard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

func TestGuard(t *testing.T) { suite.Run(t, "Guard") }

// operator is a World whose operator a case may stop.
type operator struct{ words.Cluster }

func start(ctx SpecContext, options devcluster.Options) operator {
	GinkgoHelper()
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return operator{words.Cluster{World: w}}
}

// gap is the value of the operator's metric warren_policy_gap for a policy.
func (o operator) gap(policy string) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		metrics, err := o.Operator.Metrics(ctx)
		if err == nil && !metrics.Has("warren_policy_gap", map[string]string{"policy": policy}) {
			err = fmt.Errorf("there is no warren_policy_gap of %s yet", policy)
		}
		return metrics.Value("warren_policy_gap", map[string]string{"policy": policy}), err
	}
}

// readiness is the answer of /readyz?verbose, which must be a 200.
func (o operator) readiness(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.Operator.HealthURL+"/readyz?verbose", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// events are the messages of the Events on the operator's Deployment with that reason.
func (o operator) events(reason v1alpha1.Reason) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list := &corev1.EventList{}
		if err := o.Admin().List(ctx, list, client.InNamespace("warren-system")); err != nil {
			return nil, err
		}
		var messages []string
		for _, event := range list.Items {
			about := event.InvolvedObject
			if event.Reason == string(reason) && event.Type == corev1.EventTypeWarning && about.Kind == "Deployment" &&
				about.Name == "warren-controller-manager" {
				messages = append(messages, event.Message)
			}
		}
		return messages, nil
	}
}
