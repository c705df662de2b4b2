package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
)

func TestDeploymentThatMountsAMissingConfigMap(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.OperatorAccount}}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "lost"}}}}}
	p := Patient{API: fake.NewClientBuilder().WithObjects(deployment).Build(), Namespace: "warren-system"}
	got := p.checkConfiguration(t.Context(), file{text: "kind: x"})
	if got.Status != Warning || !strings.Contains(got.Message, "ConfigMap lost") {
		t.Errorf("%+v", got)
	}
}

func TestDeploymentThatMountsNoConfigMap(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.OperatorAccount}}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "config"}}}}
	p := Patient{API: fake.NewClientBuilder().WithObjects(deployment).Build(), Namespace: "warren-system"}
	got := p.checkConfiguration(t.Context(), file{text: "kind: x"})
	if got.Status != Warning || !strings.Contains(got.Message, "mounts no ConfigMap as volume config") || got.Advice != applyAgain {
		t.Errorf("%+v", got)
	}
}

func TestConfigurationThatIsNotRecordedYet(t *testing.T) {
	t.Run("SUB-X21 before the operator has started for the first time, doctor reports that it has recorded no configuration yet, and not "+
		"that a ConfigMap is missing", func(t *testing.T) {
		empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
		_, _, err := gather.ReadStoredConfig(t.Context(), fake.NewClientBuilder().WithObjects(empty).Build(), "warren-system")
		got := Patient{}.checkConfiguration(t.Context(), file{unknown: err})
		const want = "could not be read: the operator has recorded none in ConfigMap warren-system/" + v1alpha1.AcceptedConfigName + " yet"
		if !apierrors.IsNotFound(err) || !strings.HasSuffix(got.Message, want) {
			t.Errorf("%v: %s", err, got.Message)
		}
	})
}

func TestNextStepFitsTheError(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("no right"))
	missing := apierrors.NewNotFound(corev1.Resource("configmaps"), "x")
	for want, got := range map[string]string{
		"ask a cluster admin to run this":                          stepAfter(fmt.Errorf("listing: %w", refused)),
		"run this again":                                           stepAfter(errors.New("no answer")),
		"use the plugin of the operator's version":                 file{text: "x", unknown: errors.New("unknown field")}.stepToKnow(),
		"run this as a user who may read the operator's namespace": file{unknown: refused}.stepToKnow(),
		"follow the advice of check configuration":                 file{unknown: missing}.stepToKnow(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
