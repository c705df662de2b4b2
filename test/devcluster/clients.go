package devcluster

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// Scheme returns the kinds that the clients know: those of Kubernetes, CRDs and ours.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
})

// clients holds one client per user. All share the API resources that the admin's client discovered.
type clients struct {
	mapper meta.RESTMapper
	mu     sync.Mutex
	byUser map[string]client.WithWatch
}

func (w *World) connectClients() error {
	admin := w.Config(controlplane.Admin)
	c, err := rest.HTTPClientFor(admin)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(admin, c)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	w.clients = &clients{mapper: mapper, byUser: map[string]client.WithWatch{}}
	return nil
}

// Client returns a client with that configuration. It reads from the API server, not from a cache.
func (w *World) Client(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(config, client.Options{Scheme: Scheme(), Mapper: w.clients.mapper})
}

// As returns the client of a user. It panics if the user doesn't exist.
func (w *World) As(user string) client.WithWatch {
	return w.clientOf(user, func() *rest.Config { return w.Config(user) })
}

// Admin returns the client of the cluster admin.
func (w *World) Admin() client.WithWatch { return w.As(controlplane.Admin) }

// Sudo returns the client of a user with sudo in a tenant: the user impersonates the tenant's group of sudoers, as by --as=USER
// --as-group=TENANT-sudoers.
func (w *World) Sudo(user, tenant string) client.WithWatch {
	return w.Impersonate(user, rest.ImpersonationConfig{UserName: user, Groups: []string{tenant + "-sudoers"}})
}

// Impersonate returns the client of a user who impersonates another one.
func (w *World) Impersonate(user string, as rest.ImpersonationConfig) client.WithWatch {
	return w.clientOf(fmt.Sprintf("%q as %+q", user, as), func() *rest.Config {
		config := w.Config(user)
		config.Impersonate = as
		return config
	})
}

func (w *World) clientOf(key string, config func() *rest.Config) client.WithWatch {
	w.clients.mu.Lock()
	defer w.clients.mu.Unlock()
	if c, ok := w.clients.byUser[key]; ok {
		return c
	}
	c, err := w.Client(config())
	if err != nil {
		panic(fmt.Sprintf("making the client of %s: %v", key, err))
	}
	w.clients.byUser[key] = c
	return c
}
