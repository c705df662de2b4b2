package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/guard"
	"github.com/warren-tenancy/warren/internal/connection"
	"github.com/warren-tenancy/warren/internal/leader"
)

// Options are the flags that determine where and how the manager runs.
type Options struct {
	OperatorNamespace string
	LeaderElect       bool
	MetricsAddress    string
	MetricsSecure     bool
	HealthAddress     string
	// AllowOtherIdentity lets the manager run as a user whom the policies don't name as the operator.
	AllowOtherIdentity bool
	Webhooks           WebhookOptions
	// Access is the access to the API server; nil: that of --kubeconfig, KUBECONFIG or the pod. With it, a process may have several managers.
	Access *rest.Config
	// EndProcess ends a process that no longer leads; nil: os.Exit.
	EndProcess func()
}

// BindFlags declares the flags of o.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.OperatorNamespace, "operator-namespace", "warren-system", "the namespace of the operator's Lease and Deployment")
	fs.BoolVar(&o.LeaderElect, "leader-elect", false, "let only one of several replicas write")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "where metrics are served; 0 switches them off")
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", true,
		"serve metrics by HTTPS to those who may get /metrics; false only on a loopback address")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	fs.BoolVar(&o.AllowOtherIdentity, "allow-other-identity", false, "start although the policies name another identity")
	o.Webhooks.bindFlags(fs)
}

// validate returns an error for flags that contradict each other, and for flags that would serve metrics to everybody.
func (o *Options) validate() error {
	if err := o.Webhooks.validate(); err != nil {
		return err
	}
	if o.MetricsSecure || o.MetricsAddress == "0" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.MetricsAddress)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", o.MetricsAddress, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--metrics-secure=false with --metrics-bind-address %q: insecure metrics need a loopback address", o.MetricsAddress)
	}
	return nil
}

// startTimeout is how long the API server may take to answer at the start.
const startTimeout = 10 * time.Second

// NewManager makes the manager: a client without a rate limit of its own unless the configuration sets one, a cache that keeps only the
// objects that the operator needs, and the servers of metrics, probes and webhooks.
func NewManager(ctx context.Context, o *Options, c *config.OperatorConfiguration, userAgent string) (*Manager, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	cfg, err := o.loadAccess(c, userAgent)
	if err != nil {
		return nil, err
	}
	if err := checkServerAnswers(ctx, cfg); err != nil {
		return nil, err
	}
	if !o.AllowOtherIdentity {
		if err := guard.CheckIdentity(ctx, cfg); err != nil {
			return nil, err
		}
	}
	refusals := guard.NewRefusals(cfg)
	own, err := newDefinitions(cfg)
	if err != nil {
		return nil, err
	}
	if err := own.check(ctx); err != nil {
		return nil, err
	}
	options := o.managerOptions()
	options.Cache.NewInformer = own.newInformer
	if options.WebhookServer, err = o.Webhooks.makeServer(); err != nil {
		return nil, err
	}
	lock, err := leader.NewLock(cfg, o.OperatorNamespace, v1alpha1.OperatorName, o.EndProcess)
	if err != nil {
		return nil, err
	}
	lock.Elect(cfg, &options)
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	lock.LockConfig.EventRecorder =
		mgr.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // Events are core/v1, as client-go's election makes them
	recorder := mgr.GetEventRecorderFor(v1alpha1.OperatorName) //nolint:staticcheck // Events are core/v1, with component warren
	refusals.SetRecorder(recorder, guard.Deployment(o.OperatorNamespace))
	return withProbes(mgr, o.HealthAddress), nil
}

// loadAccess returns the access to the API server. Its connections end when the other side has gone silent; see package connection.
func (o *Options) loadAccess(c *config.OperatorConfiguration, userAgent string) (*rest.Config, error) {
	cfg := o.Access
	if cfg == nil {
		var err error
		if cfg, err = ctrl.GetConfig(); err != nil {
			return nil, fmt.Errorf("no access to an API server: set --kubeconfig or KUBECONFIG, or run in a pod: %w", err)
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.Dial = userAgent, connection.Dial
	cfg.Wrap(connection.LeaveRetries)
	cfg.Wrap(connection.FinishWrites)
	cfg.QPS, cfg.Burst = c.ClientConnection.QPS, c.ClientConnection.Burst
	if cfg.QPS == 0 {
		cfg.QPS = -1 // the API server's own priority and fairness limits the requests
	}
	return cfg, nil
}

func (o *Options) managerOptions() ctrl.Options {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		authenticationv1.AddToScheme, admissionregistrationv1.AddToScheme, batchv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types are fixed at build time
		}
	}
	ours, err := labels.Parse(v1alpha1.LabelAccess + ",!" + v1alpha1.LabelInheritedFrom)
	if err != nil {
		panic(err) // the selector is fixed at build time
	}
	metrics := server.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure}
	if o.MetricsSecure {
		metrics.FilterProvider = guardMetrics
		metrics.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }}
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: trimObject,
			ByObject: map[client.Object]cache.ByObject{
				&rbacv1.ClusterRole{}:        {Label: ours},
				&rbacv1.ClusterRoleBinding{}: {Label: ours},
				&rbacv1.RoleBinding{}:        {Label: ours},
			},
		},
		MapperProvider:         newMapper,
		Metrics:                metrics,
		HealthProbeBindAddress: "0", // withProbes serves the probes
		LeaderElection:         o.LeaderElect,
		Controller:             ctrlconfig.Controller{SkipNameValidation: new(o.Access != nil)}, // names are unique in a process
	}
}

// checkServerAnswers waits until the API server answers, for startTimeout at most, so that a wrong address is reported in one sentence.
func checkServerAnswers(ctx context.Context, cfg *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the access to the API server at %s is not usable: %w", cfg.Host, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = d.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
		return last == nil || apierrors.IsUnauthorized(last), nil
	})
	switch {
	case apierrors.IsUnauthorized(last):
		return fmt.Errorf("the API server at %s does not accept the credentials; check the token: %w", cfg.Host, last)
	case err != nil:
		return fmt.Errorf("the API server at %s gives no usable answer; check the address and its CA: %w", cfg.Host, errors.Join(last, ctx.Err()))
	}
	return nil
}
