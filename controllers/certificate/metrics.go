package certificate

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	expiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warren_certificate_expiry_timestamp_seconds", Help: "Time at which the certificate of the webhooks expires.",
	})
	rotations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_certificate_rotations_total", Help: "Replacements of the certificate of the webhooks; result is success, or error where " +
			"its Secret could not be written.",
	}, []string{"result"})
	synced = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_webhook_ca_synced",
		Help: "1 if every webhook of that configuration has the right caBundle; 0 also if the configuration is missing. Only the leader " +
			"reports it.",
	}, []string{"configuration"})
)

func init() {
	metrics.Registry.MustRegister(expiry, rotations, synced)
	for _, result := range []string{"success", "error"} {
		rotations.WithLabelValues(result) // exists with 0 from the start, so that the first error shows as an increase
	}
}

// Watch sets the expiry metric from a certificate that another tool provides in files.
func Watch(files *certwatcher.CertWatcher) {
	files.RegisterCallback(func(c tls.Certificate) {
		if leaf, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			expiry.Set(float64(leaf.NotAfter.Unix()))
		}
	})
}
