package trees_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// configured is a cluster whose operator starts again with each configuration file.
type configured struct{ cluster }

// configure starts the operator with another file, and expects that this file is accepted and recorded. The operator compares the next
// file with the record.
func (c *configured) configure(ctx context.Context, text string) {
	GinkgoHelper()
	Expect(c.Operator.Configure(ctx, text)).To(Succeed())
	hash := sha256.Sum256([]byte(text))
	c.expect(ctx, "warren_config_info", 1, "hash", hex.EncodeToString(hash[:]))
	Eventually(c.recorded).WithContext(ctx).Should(Equal(text))
}

// expect waits until a metric with these labels, in pairs, is there and has that value.
func (c *configured) expect(ctx context.Context, metric string, value float64, labels ...string) {
	GinkgoHelper()
	pairs := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		pairs[labels[i]] = labels[i+1]
	}
	Eventually(func(g Gomega) {
		m, err := c.Operator.Metrics(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Has(metric, pairs)).To(BeTrue(), "%s %v", metric, pairs)
		g.Expect(m.Value(metric, pairs)).To(Equal(value), "%s %v", metric, pairs)
	}).WithContext(ctx).Should(Succeed())
}

// expectHeld starts the operator with another file, and expects that it lives, isn't ready, and logs refusal.
func (c *configured) expectHeld(ctx context.Context, text, refusal string) {
	GinkgoHelper()
	before := len(c.Operator.Log())
	_, err := c.Operator.Stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Operator.WriteConfig(text)).To(Succeed())
	Expect(c.Operator.StartAlive(ctx)).To(Succeed())
	said := func() string { return c.Operator.Log()[before:] }
	Eventually(said).WithContext(ctx).
		Should(MatchRegexp("the configuration file is not accepted: this process is not ready, and changes nothing.*" + refusal))
	answer, err := http.Get(c.Operator.HealthURL + "/readyz")
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	Expect(answer).To(HaveHTTPStatus(http.StatusInternalServerError))
}

// recorded returns the file that the operator says is in force.
func (c *configured) recorded(ctx context.Context) (string, error) {
	record := &corev1.ConfigMap{}
	err := c.Admin().Get(ctx, client.ObjectKey{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}, record)
	return record.Data["config.yaml"], err
}

// fileEvents returns the messages of the Events with this reason on the operator's Deployment.
func (c *configured) fileEvents(reason v1alpha1.Reason) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (messages []string, err error) {
		events := &corev1.EventList{}
		err = errors.Join(err, c.Admin().List(ctx, events, client.InNamespace("warren-system")))
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == string(reason) && e.InvolvedObject.Kind == "Deployment" {
				messages = append(messages, e.Message)
			}
		}
		return messages, err
	}
}
