// Package certificate keeps the certificate of the webhooks. Every replica serves the one in a Secret; the leader
// rotates it, and writes it into the caBundle of the webhook configurations so that the API server trusts it. Package
// internal/servingcert decides which step comes when.
package certificate

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/servingcert"
)

// The names of the objects that this package reads and writes; the RBAC manifests contain them, too.
const (
	SecretName  = "warren-webhook-cert"
	ServiceName = "warren-webhook"
	// ConfigurationName is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration.
	ConfigurationName = v1alpha1.OperatorName
)

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// Settle is how long a bundle must be in the webhook configurations before a rotation goes on. By then, every API
	// server and every replica has seen it.
	Settle time.Duration
	// Retry is the pause after a step that failed.
	Retry time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing { return Timing{Settle: time.Minute, Retry: 5 * time.Second} }

// Options hold what SetupWithManager needs.
type Options struct {
	// Namespace is the namespace that the operator runs in.
	Namespace string
	Serving   *Serving
	Events    record.EventRecorder
	Timing    Timing
}

// SetupWithManager makes every replica follow the Secret, and the leader rotate it. It uses a cache of its own for
// three objects, because the manager's cache would hold all Secrets.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	objects, err := newCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	if err := mgr.Add(objects); err != nil {
		return err
	}
	c, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: objects.scheme, Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: objects},
	})
	if err != nil {
		return fmt.Errorf("making a client for the certificate: %w", err)
	}
	log := mgr.GetLogger().WithName("certificate")
	f := &follower{client: c, serving: o.Serving, names: servingcert.Names(ServiceName, o.Namespace), log: log, elected: mgr.Elected()}
	if err := f.watchSecret(ctx, objects); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhooks", f.checkReady(mgr.GetWebhookServer().StartedChecker())); err != nil {
		return err
	}
	return newKeeper(c, o, log).setupWithManager(mgr, objects)
}

// threeObjects is a cache of the Secret and the two webhook configurations, each watched by its name.
type threeObjects struct {
	cache.Cache
	scheme *runtime.Scheme
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas watch, too, because they serve the
// same certificate.
func (*threeObjects) NeedLeaderElection() bool { return false }

func newCache(mgr ctrl.Manager, namespace string) (*threeObjects, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {FieldSelector: named(SecretName)}}},
			&admissionv1.ValidatingWebhookConfiguration{}: {Field: named(ConfigurationName)},
			&admissionv1.MutatingWebhookConfiguration{}:   {Field: named(ConfigurationName)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the certificate: %w", err)
	}
	return &threeObjects{Cache: c, scheme: scheme}, nil
}

func newKeeper(c client.Client, o Options, log logr.Logger) *keeper {
	return &keeper{
		client: c, events: o.Events, timing: o.Timing, log: log,
		secret: client.ObjectKey{Namespace: o.Namespace, Name: SecretName},
		names:  servingcert.Names(ServiceName, o.Namespace),
		sync:   bundles{client: c, written: map[string]string{}},
	}
}

// setupWithManager runs the keeper on the leader. A change of any of the three objects makes it look at all of them.
// The first look needs no change: if all three are missing, that has to be reported, too.
func (k *keeper) setupWithManager(mgr ctrl.Manager, objects cache.Cache) error {
	var changes []source.Source
	for _, object := range []client.Object{
		&corev1.Secret{}, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{},
	} {
		changes = append(changes, requeue.Changes(objects, object))
	}
	loop := &requeue.Loop{Name: "certificate", Look: k.rotateStep, RetryMin: k.timing.Retry, RetryMax: k.timing.Retry}
	return loop.SetupWithManager(mgr, changes...)
}
