package doctor

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// stepToKnow returns the next step of a check that needs the configuration file in force, and has none. The operator has
// accepted a file that it records, so a plugin that can't parse it is of another version.
func (f file) stepToKnow() string {
	switch {
	case f.text != "":
		return "use the plugin of the operator's version"
	case apierrors.IsForbidden(f.unknown):
		return "run this as a user who may read the operator's namespace"
	}
	return "see what check configuration says"
}

// checkConfiguration compares the configuration file in force with the file that the operator's Deployment mounts.
func (p Patient) checkConfiguration(ctx context.Context, f file) Check {
	const name = "configuration"
	if f.unknown != nil && f.text == "" {
		return warning(name, "the configuration file that the operator records could not be read: "+f.unknown.Error(),
			"run this as a user who may read the operator's namespace, or name that namespace by --operator-namespace; "+
				"see whether the operator runs, and whether ConfigMap "+v1alpha1.AcceptedConfigName+" is there: make deploy installs it")
	}
	brought, from, err := p.readBroughtConfiguration(ctx)
	switch {
	case apierrors.IsNotFound(err) && from != "":
		return warning(name, fmt.Sprintf("ConfigMap %s, which the operator's Deployment mounts, does not exist: new Pods of the operator "+
			"can't start", from), applyAgain)
	case apierrors.IsNotFound(err):
		return ok(name, "recorded; there is no Deployment of the operator with another file")
	case err != nil:
		return warning(name, "it is not known which file the operator's Deployment has: "+err.Error(),
			stepAfter(err))
	case brought != f.text:
		return warning(name, fmt.Sprintf("the file of ConfigMap %s is not in force", from),
			"wait for the roll-out; if it doesn't end, kubectl -n "+p.Namespace+" describe deployment "+v1alpha1.OperatorAccount+
				" shows the Event InvalidConfiguration or RemovalsHeld with the cause")
	}
	return ok(name, "the file of ConfigMap "+from+" is in force")
}

// readBroughtConfiguration reads the file that new Pods of the operator get, and returns it with the name of its ConfigMap.
func (p Patient) readBroughtConfiguration(ctx context.Context) (text, from string, err error) {
	deployment := &appsv1.Deployment{}
	if err := p.API.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.OperatorAccount}, deployment); err != nil {
		return "", "", err
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Name == "config" && volume.ConfigMap != nil {
			from = volume.ConfigMap.Name
		}
	}
	mounted := &corev1.ConfigMap{}
	err = p.API.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: from}, mounted)
	return mounted.Data["config.yaml"], from, err
}
