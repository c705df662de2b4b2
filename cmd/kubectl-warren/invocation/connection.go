package invocation

import (
	"context"
	"io"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
)

// FieldOwner is the name of the plugin in metadata.managedFields.
const FieldOwner = ProgramName

// RESTConfig returns the configuration of a client that reaches the API server as flags and kubeconfig say.
func (inv *Invocation) RESTConfig() (*rest.Config, error) {
	return kubectl.Config(inv.Flags, inv.Streams.ErrOut, ProgramName+"/"+inv.Build.Version)
}

// Connect returns a client for Warren's kinds and those of Kubernetes that the commands need. The client knows the
// resources of these kinds, so it makes no discovery requests.
func (inv *Invocation) Connect() (client.Client, error) { return inv.connectBy(knownResources()) }

// ConnectUnwarned returns a client as Connect does, but discards the API server's warnings to the user. It is for a
// step of a command that causes a warning about a state that the next step corrects.
func (inv *Invocation) ConnectUnwarned() (client.Client, error) {
	unwarned := *inv
	unwarned.Streams.ErrOut = io.Discard
	return unwarned.Connect()
}

// ConnectDiscovering returns a client for every kind that the API server has; for most kinds, it can read only
// metadata.
func (inv *Invocation) ConnectDiscovering() (client.Client, error) {
	mapper, err := inv.Flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return inv.connectBy(mapper)
}

// Discovery returns a client that asks the API server itself what it serves, without a cache on disk.
func (inv *Invocation) Discovery() (*discovery.DiscoveryClient, error) {
	config, err := inv.RESTConfig()
	if err != nil {
		return nil, err
	}
	return discovery.NewDiscoveryClientForConfig(config)
}

// ServedResources returns a mapper for what the API server serves now.
func (inv *Invocation) ServedResources() (meta.RESTMapper, error) {
	api, err := inv.Discovery()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api)), nil
}

func (inv *Invocation) connectBy(mapper meta.RESTMapper) (client.Client, error) {
	config, err := inv.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, metav1.AddMetaToScheme, corev1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme,
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper, FieldOwner: FieldOwner,
		FieldValidation: metav1.FieldValidationStrict})
	if err != nil || inv.Restrict == nil {
		return api, err
	}
	return inv.Restrict(api), nil
}

func knownResources() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, v1alpha1.GroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ResourceQuota"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"), meta.RESTScopeNamespace)
	mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), meta.RESTScopeRoot)
	mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("LNamespace"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("SubNamespace"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind("HierarchicalResourceQuota"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind("SudoRequest"), meta.RESTScopeNamespace)
	return mapper
}

// serverVersionPatience bounds the wait for a server that may not be there. --request-timeout overrides it.
const serverVersionPatience = 5 * time.Second

// ServerVersion asks the API server for its version. It gives up after five seconds, or --request-timeout if that is
// set.
func (inv *Invocation) ServerVersion() (*version.Info, error) {
	config, err := inv.RESTConfig()
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 {
		config.Timeout = serverVersionPatience
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return api.ServerVersion()
}

// ServerMetrics reads the metrics of the API server.
func (inv *Invocation) ServerMetrics(ctx context.Context) ([]byte, error) {
	api, err := inv.Discovery()
	if err != nil {
		return nil, err
	}
	return api.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
}
