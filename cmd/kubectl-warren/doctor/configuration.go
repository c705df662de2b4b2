package doctor

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// stepToKnow returns the next step of a check that needs the configuration in force, while that is not known. The
// operator has accepted a file that it records, so a plugin that can't parse it is of another version.
func (f file) stepToKnow() string {
	switch {
	case f.text != "":
		return "use the plugin of the operator's version"
	case apierrors.IsForbidden(f.unknown):
		return "run this as a user who may read the operator's namespace"
	}
	return "follow the advice of check configuration"
}

// checkConfiguration compares the configuration file in force with the file that the operator's Deployment mounts.
func (p Patient) checkConfiguration(ctx context.Context, f file) Check {
	const name = "configuration"
	if f.unknown != nil && f.text == "" {
		return warnOf(name, "the configuration file that the operator records could not be read: "+f.unknown.Error(),
			"run this as a user who may read the operator's namespace, or name that namespace by --operator-namespace; "+
				"see whether the operator runs, and whether ConfigMap "+v1alpha1.AcceptedConfigName+
				" is there: make deploy installs it")
	}
	brought, from, err := p.readBroughtConfiguration(ctx)
	switch {
	case errors.Is(err, errNoConfigMapMounted):
		return warnOf(name, fmt.Sprintf("Deployment %s mounts no ConfigMap as volume config, so it is not known which file new Pods of the "+
			"operator get", v1alpha1.OperatorAccount), applyAgain)
	case apierrors.IsNotFound(err) && from != "":
		return warnOf(name, fmt.Sprintf("ConfigMap %s, which the operator's Deployment mounts, does not exist: new Pods of the operator "+
			"can't start", from), applyAgain)
	case apierrors.IsNotFound(err):
		return passOf(name, "the recorded file is in force; there is no Deployment "+v1alpha1.OperatorAccount+" in namespace "+p.Namespace+
			" to compare it with")
	case err != nil:
		return warnOf(name, "it is not known which file the operator's Deployment has: "+err.Error(),
			stepAfter(err))
	case brought != f.text:
		return warnOf(name, fmt.Sprintf("the file of ConfigMap %s is not in force", from),
			"wait for the roll-out; if it doesn't end, look for Event InvalidConfiguration or RemovalsHeld in kubectl -n "+p.Namespace+
				" describe deployment "+v1alpha1.OperatorAccount+", or read the new Pod's log")
	}
	return passOf(name, "the file of ConfigMap "+from+" is in force")
}

var errNoConfigMapMounted = errors.New("no volume config is a ConfigMap")

// readBroughtConfiguration reads the file that new Pods of the operator get, and returns it with the name of its
// ConfigMap. The error is errNoConfigMapMounted if the operator's Deployment names no ConfigMap.
func (p Patient) readBroughtConfiguration(ctx context.Context) (text, from string, err error) {
	deployment := &appsv1.Deployment{}
	if err := p.API.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.OperatorAccount},
		deployment); err != nil {
		return "", "", err
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Name == "config" && volume.ConfigMap != nil {
			from = volume.ConfigMap.Name
		}
	}
	if from == "" {
		return "", "", errNoConfigMapMounted
	}
	mounted := &corev1.ConfigMap{}
	err = p.API.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: from}, mounted)
	return mounted.Data["config.yaml"], from, err
}
