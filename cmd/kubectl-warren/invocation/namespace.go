package invocation

import (
	"cmp"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrNoNamespace is the error of NamespaceOf if neither --namespace nor the kubeconfig's context names a namespace.
var ErrNoNamespace = errors.New("no namespace is named, and the kubeconfig's context has none: add -n NAMESPACE")

// NamespaceOf returns the namespace of --namespace or, without it, of the kubeconfig's context. It fails if neither names
// one: namespace default, in which kubectl would act then, is in no tree.
func (inv *Invocation) NamespaceOf() (string, error) {
	loader := inv.Flags.ToRawKubeConfigLoader()
	name, overridden, err := loader.Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace by the kubeconfig and flags: %w", err)
	}
	if overridden || name != metav1.NamespaceDefault {
		return name, nil
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return "", fmt.Errorf("finding the namespace by the kubeconfig and flags: %w", err)
	}
	if context := raw.Contexts[cmp.Or(*inv.Flags.Context, raw.CurrentContext)]; context == nil || context.Namespace == "" {
		return "", ErrNoNamespace
	}
	return name, nil
}
