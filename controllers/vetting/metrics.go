package vetting

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var findings = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warren_user_role_findings",
	Help: "Rights of the ClusterRole that users hold which are dangerous, or which the vetted list of this Kubernetes version lacks; of the leader.",
}, []string{"severity"})

func init() { metrics.Registry.MustRegister(findings) }
