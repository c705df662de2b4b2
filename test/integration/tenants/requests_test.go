package tenants_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// request is a real request, not a review.
type request struct {
	what string
	send func(context.Context, client.Client) error
}

func listing(list client.ObjectList, what string, options ...client.ListOption) request {
	return request{"list " + what, func(ctx context.Context, c client.Client) error {
		return c.List(ctx, list.DeepCopyObject().(client.ObjectList), options...)
	}}
}

func podsIn(namespace string) request {
	return listing(&corev1.PodList{}, "pods in "+namespace, client.InNamespace(namespace))
}

func secretsIn(namespace string) request {
	return listing(&corev1.SecretList{}, "secrets in "+namespace, client.InNamespace(namespace))
}

func reading(object client.Object, what string) request {
	return request{"get " + what, func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	}}
}

func readTenant(name string) request {
	return reading(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, "LNamespace "+name)
}

// patching writes an annotation, in a subresource if one is named.
func patching(object client.Object, what, subresource string) request {
	return request{"patch " + what + "/" + subresource, func(ctx context.Context, c client.Client) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"true"}}}`))
		if subresource != "" {
			return c.SubResource(subresource).Patch(ctx, object.DeepCopyObject().(client.Object), patch)
		}
		return c.Patch(ctx, object.DeepCopyObject().(client.Object), patch)
	}}
}

func patchTenant(name, subresource string) request {
	return patching(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, "LNamespace "+name, subresource)
}

func deleting(object client.Object, what string) request {
	return request{"delete " + what, func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, object.DeepCopyObject().(client.Object))
	}}
}

func making(object client.Object, what string) request {
	return request{"create " + what, func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, object.DeepCopyObject().(client.Object))
	}}
}

// bindClusterAdmin binds another user to cluster-admin in a namespace.
func bindClusterAdmin(namespace string) request {
	binding := build.RoleBinding(namespace, "", "cluster-admin", build.RBACUser("zed"))
	binding.GenerateName = "given-"
	return making(binding, "RoleBinding to cluster-admin in "+namespace)
}

// bindClusterAdminEverywhere binds another user to cluster-admin in the whole cluster.
func bindClusterAdminEverywhere() request {
	binding := build.ClusterRoleBinding("", "cluster-admin", build.RBACUser("zed"))
	binding.GenerateName = "given-"
	return making(binding, "ClusterRoleBinding to cluster-admin")
}

func narrowRole(name string) request {
	return patching(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, "ClusterRole "+name, "")
}

// beDenied matches HTTP 403. Its wording depends on the API server's cache, so no case compares it.
func beDenied() gomegatypes.GomegaMatcher { return MatchError(apierrors.IsForbidden, "is a 403") }

// allowed expects that each request is granted. The API server's authorizer learns of a binding a moment after it is written.
func allowed(ctx context.Context, c client.Client, requests ...request) {
	GinkgoHelper()
	for _, r := range requests {
		Eventually(func() error { return r.send(ctx, c) }).WithContext(ctx).Should(Succeed(), r.what)
	}
}

// denied expects that each request is refused at once.
func denied(ctx context.Context, c client.Client, requests ...request) {
	GinkgoHelper()
	for _, r := range requests {
		Expect(r.send(ctx, c)).To(beDenied(), r.what)
	}
}

// soonDenied waits until each request is refused.
func soonDenied(ctx context.Context, c client.Client, requests ...request) {
	GinkgoHelper()
	for _, r := range requests {
		Eventually(func() error { return r.send(ctx, c) }).WithContext(ctx).Should(beDenied(), r.what)
	}
}

// throughout sends a request again and again until stop is called, which returns the first error.
func throughout(ctx context.Context, c client.Client, r request) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		var first error
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			if err := r.send(ctx, c); err != nil && ctx.Err() == nil && first == nil {
				first = fmt.Errorf("%s: %w", r.what, err)
			}
			<-pace.C
		}
		result <- first
	}()
	return func() error {
		cancel()
		return <-result
	}
}
