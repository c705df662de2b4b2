package sudo

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// buildMeta returns the metadata of an object of a grant, which is named by the UID of its request.
func buildMeta(r *v1alpha1.SudoRequest, owner metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: v1alpha1.SudoNamespace, Name: string(r.UID),
		Labels: map[string]string{v1alpha1.LabelAccess: v1alpha1.AccessRequest, v1alpha1.LabelTenant: r.Namespace,
			"app.kubernetes.io/managed-by": v1alpha1.OperatorName},
		OwnerReferences: []metav1.OwnerReference{owner},
	}
}

// BuildTimer returns the Job that ends the right of a request: it has nothing to run, so it is complete at once, and the controller
// manager deletes it after the time that is left.
func BuildTimer(r *v1alpha1.SudoRequest, tenant *v1alpha1.LNamespace, left time.Duration) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: buildMeta(r, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace", Name: tenant.Name, UID: tenant.UID}),
		Spec: batchv1.JobSpec{
			Completions: new(int32(0)), Parallelism: new(int32(0)), TTLSecondsAfterFinished: new(int32(left / time.Second)),
			// No pod is ever made of it. Pod security judges it all the same.
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65534)),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{Name: "none", Image: "none.invalid/none",
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
						Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
			}},
		},
	}
}

func referTo(timer *batchv1.Job) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: timer.Name, UID: timer.UID}
}

// BuildRole returns the Role that lets a user become the temporary sudoer of a tenant while a timer exists.
func BuildRole(r *v1alpha1.SudoRequest, timer *batchv1.Job) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: buildMeta(r, referTo(timer)),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"},
			ResourceNames: []string{r.Namespace}}},
	}
}

// BuildBinding returns the RoleBinding of that Role, which puts the right in force.
func BuildBinding(r *v1alpha1.SudoRequest, timer *batchv1.Job) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: buildMeta(r, referTo(timer)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: string(r.UID)},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.Spec.User}},
	}
}

// findEnd returns when the right of a request ends; nil while its timer does not run. Others may write Jobs, too, so a timer counts for no
// more than the time that was asked for.
func findEnd(f *Facts) *metav1.Time {
	timer := f.Timer
	if timer.Status.CompletionTime == nil || timer.Spec.TTLSecondsAfterFinished == nil {
		return nil
	}
	for _, c := range timer.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			left := min(time.Duration(*timer.Spec.TTLSecondsAfterFinished)*time.Second, f.Request.Spec.Duration.Value())
			end := metav1.NewTime(timer.Status.CompletionTime.Add(left))
			return &end
		}
	}
	return nil
}

// isTimerGenuine reports whether a Job that has the name of a timer is one that the operator makes for the request. Whoever may create Jobs
// may be quicker than the operator; a Job of theirs would end the right when they like.
func isTimerGenuine(f *Facts) bool {
	spec := f.Timer.Spec
	if spec.TTLSecondsAfterFinished == nil {
		return false
	}
	left := time.Duration(*spec.TTLSecondsAfterFinished) * time.Second
	want := BuildTimer(f.Request, f.Tenant, left)
	return left <= f.Request.Spec.Duration.Value() && isBuiltIn(spec.ManagedBy) && len(f.Timer.Finalizers) == 0 && isAlike(f.Timer, want) &&
		spec.Completions != nil && *spec.Completions == 0 && spec.Parallelism != nil && *spec.Parallelism == 0
}

// isBuiltIn reports whether the controller manager completes a Job.
func isBuiltIn(controller *string) bool {
	return controller == nil || *controller == batchv1.JobControllerName
}

// isRoleGenuine reports whether a Role that has the name of a grant's is one that the operator makes for it.
func isRoleGenuine(f *Facts) bool {
	want := BuildRole(f.Request, f.Timer)
	return isAlike(f.Role, want) && equality.Semantic.DeepEqual(f.Role.Rules, want.Rules)
}

// isAlike reports whether an object has the labels and the owner of the one that the operator makes.
func isAlike(is, want metav1.Object) bool {
	for key, value := range want.GetLabels() {
		if is.GetLabels()[key] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(is.GetOwnerReferences(), want.GetOwnerReferences())
}
