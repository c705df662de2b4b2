package vetting

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var findings = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warren_user_role_findings",
	Help: "Rights of the ClusterRole of users that are a danger, or new: not in the vetted list of this Kubernetes version. Only the " +
		"leader reports them.",
}, []string{"severity"})

func init() { metrics.Registry.MustRegister(findings) }
