package webhooks

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "warren_admission_requests_total", Help: "Admission reviews that the operator answered.",
}, []string{"webhook", "allowed"})

func init() { metrics.Registry.MustRegister(requests) }

// countAnswers counts the answers of a handler. A panic counts as a refusal, since the webhook server answers it with
// an error.
func countAnswers(name string, handler admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		var response admission.Response
		defer func() { requests.WithLabelValues(name, strconv.FormatBool(response.Allowed)).Inc() }()
		response = handler.Handle(ctx, req)
		return response
	})
}
