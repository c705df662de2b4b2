package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// enforceLabel overrides the cluster's default level of pod security for one namespace.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// probeName is the name of the objects that are created by dry run only. No such object ever exists.
const probeName = "warren-doctor"

var violated = regexp.MustCompile(`violates PodSecurity "([a-z]+):`)

const readDefaultLevel = "look at the API server's --admission-control-config-file: the default of PodSecurity should be baseline or " +
	"restricted"

// podSecurity finds the cluster's default level of pod security, which no API returns: it tries to create a privileged
// pod, by dry run, in a namespace without a level of its own.
func (p Patient) podSecurity(ctx context.Context) Check {
	const name = "pod-security"
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespacePublic, "kube-node-lease"} {
		meta := &corev1.Namespace{}
		if err := p.API.Get(ctx, client.ObjectKey{Name: namespace}, meta); err != nil || meta.Labels[enforceLabel] != "" {
			continue
		}
		return checkLevel(namespace, p.API.Create(ctx, buildPrivileged(namespace), client.DryRunAll))
	}
	return warnOf(name, "the default level is not known: each of the namespaces default, kube-public and kube-node-lease sets a level of "+
		"its own, or could not be read", readDefaultLevel)
}

// checkLevel returns the result of the check, by the API server's answer to the privileged pod.
func checkLevel(namespace string, answer error) Check {
	const name = "pod-security"
	var refusal string
	if answer != nil {
		refusal = answer.Error()
	}
	level := violated.FindStringSubmatch(refusal)
	switch {
	case level != nil:
		return passOf(name, "the default level of pod security is "+level[1])
	case answer == nil:
		return warnOf(name, "the default level is privileged: a user who controls a namespace without the label enforce can reach the nodes",
			"set the default of PodSecurity to baseline (--admission-control-config-file), or label the roots of tenants "+
				enforceLabel+"=baseline")
	}
	return warnOf(name, "the default level is not known: a privileged pod in "+namespace+" was refused for another reason: "+refusal,
		"ask a cluster admin to run this, or "+readDefaultLevel)
}

func buildPrivileged(namespace string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probeName},
		Spec: corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{
			Name: probeName, Image: probeName, SecurityContext: &corev1.SecurityContext{Privileged: &yes},
		}}},
	}
}

// checkWebhook sends an LNamespace through the webhooks, by dry run. An account that may create no tenants sends a
// SubNamespace in namespace default, which is never in a tree: the right to create one there makes no namespace.
func (p Patient) checkWebhook(ctx context.Context) Check {
	const name = "webhook"
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	err := p.API.Get(ctx, client.ObjectKey{Name: v1alpha1.OperatorName}, configuration)
	switch {
	case apierrors.IsNotFound(err):
		return warnOf(name, "there is no ValidatingWebhookConfiguration "+v1alpha1.OperatorName+": only policies and reconcilers check "+
			"requests, and reconcilers report a problem later than a webhook",
			"if the operator runs with --webhooks=false, do nothing; else "+applyAgain)
	case err != nil:
		return warnOf(name, "it is not known whether there is a ValidatingWebhookConfiguration "+v1alpha1.OperatorName+": "+err.Error(),
			stepAfter(err))
	}
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	answer := p.API.Create(ctx, tenant, client.DryRunAll)
	if apierrors.IsForbidden(answer) && !strings.Contains(answer.Error(), "admission webhook") {
		sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: probeName}}
		answer = p.API.Create(ctx, sub, client.DryRunAll)
	}
	return judgeWebhook(answer)
}

// judgeWebhook returns the result of the check. The text of the answer shows whether the webhooks were called.
func judgeWebhook(answer error) Check {
	const name = "webhook"
	switch {
	case answer == nil:
		return passOf(name, "answers")
	case strings.Contains(answer.Error(), "failed calling webhook"), strings.Contains(answer.Error(), "failed to call webhook"):
		return failOf(name, "it can't be reached: "+firstLine(answer.Error()),
			"look at the operator's pods, Service warren-webhook and the caBundle of the webhook configurations; until then Warren's kinds can't "+
				"be changed")
	case strings.Contains(answer.Error(), "admission webhook"):
		return passOf(name, "answers, and refuses "+probeName)
	}
	return warnOf(name, fmt.Sprintf("it is not known whether the webhook answers: an LNamespace, and a SubNamespace in default, "+
		"sent by dry run, were refused before the webhook was called: %s",
		firstLine(answer.Error())),
		"ask someone who may create LNamespaces to run this")
}
