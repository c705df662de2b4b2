// Command memcached is an operator whose informers follow its rights: it deploys Memcacheds wherever it has the rights, writes "Not
// permitted" into the status elsewhere, and notices when a right comes or goes. It needs cluster-wide rights on its own kind only.
package main

import (
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

func main() {
	probes := flag.String("health-probe-bind-address", ":8081", "where /healthz and /readyz answer")
	flag.Parse()
	if err := run(*probes); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

func run(probes string) error {
	ctrl.SetLogger(zap.New())
	addToScheme(scheme.Scheme)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{HealthProbeBindAddress: probes, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	set, err := watchset.New(config, watchset.Options{Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper(),
		Logger: manager.GetLogger()})
	if err != nil {
		return err
	}
	if err := manager.Add(set); err != nil {
		return err
	}
	const name = "memcached"
	r := &reconciler{Client: manager.GetClient(), set: set.For(name)}
	err = ctrl.NewControllerManagedBy(manager).Named(name).For(&Memcached{}).
		WatchesRawSource(r.set.Source(appsv1.SchemeGroupVersion.WithResource("deployments"), r.ownersIn())).
		WatchesRawSource(r.set.Source(corev1.SchemeGroupVersion.WithResource("pods"), r.ownersIn())).
		WatchesRawSource(r.set.States()). // enqueues a Memcached when a right that it needs comes or goes
		Complete(r)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
