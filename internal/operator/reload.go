package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/configfile"
)

var (
	reloadSuccessful = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warren_config_last_reload_successful", Help: "1 if the configuration file is valid and in force.",
	})
	reloadTime = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warren_config_last_reload_success_timestamp_seconds", Help: "When the configuration in force was read.",
	})
	restartRequired = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_config_restart_required", Help: "Fields of the file that differ from what runs until a restart.",
	}, []string{"field"})
	info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_config_info", Help: "The hash of the file in force.",
	}, []string{"hash"})
)

func init() { metrics.Registry.MustRegister(reloadSuccessful, reloadTime, restartRequired, info) }

// Follow keeps the configuration in force with mgr, and reports each accepted or refused file in logs and metrics.
func Follow(mgr ctrl.Manager, store *configfile.Store) error {
	log := ctrl.Log.WithName("configuration")
	store.OnAccepted = func(a configfile.Accepted) {
		reloadSuccessful.Set(1)
		reloadTime.SetToCurrentTime()
		info.Reset()
		info.WithLabelValues(a.Hash).Set(1)
		restartRequired.Reset()
		for _, field := range a.RestartRequired {
			restartRequired.WithLabelValues(field).Set(1)
			log.Info("a change takes effect after a restart", "field", field)
		}
		for _, warning := range a.Warnings {
			log.Info("warning", "text", warning)
		}
	}
	store.OnRefused = func(err error) {
		reloadSuccessful.Set(0)
		log.Error(err, "the configuration file is refused; the running configuration stays in force")
	}
	store.OnAccepted(store.Started())
	return mgr.Add(store)
}
