package sudo

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
)

// nobody is the configuration for no impersonation besides that of the flags and the kubeconfig.
var nobody = rest.ImpersonationConfig{}

// buildClient returns a client for the requests that are made before kubectl runs. The client already knows the
// resources of these requests, so it makes no discovery requests.
func (c *call) buildClient(as rest.ImpersonationConfig) (client.Client, error) {
	config, err := kubectl.Config(c.flags, c.streams.ErrOut, c.agent)
	if err != nil {
		return nil, err
	}
	if as.UserName != "" { // otherwise the impersonation of the flags and the kubeconfig stays
		config.Impersonate = as
	}
	scheme := runtime.NewScheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, add := range []func(*runtime.Scheme) error{
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("LNamespace"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("SudoRequest"), meta.RESTScopeNamespace)
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// targetNamespace returns the namespace in which kubectl will act; said is false if neither a flag nor the context
// names one.
func (c *call) targetNamespace() (name string, said bool, err error) {
	loader := c.flags.ToRawKubeConfigLoader()
	name, overridden, err := loader.Namespace()
	if err != nil || overridden || name != metav1.NamespaceDefault {
		return name, true, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return name, false, err
	}
	current := raw.CurrentContext
	if *c.flags.Context != "" {
		current = *c.flags.Context
	}
	context := raw.Contexts[current]
	return name, context != nil && context.Namespace != "", nil
}
