package propagation_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
)

// copied waits until the namespaces have copies that equal the source as it is now.
func (f *family) copied(ctx context.Context, source client.Object, namespaces ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		for _, namespace := range namespaces {
			if err := f.differs(ctx, source, namespace); err != nil {
				return err
			}
		}
		return nil
	}).Should(Succeed(), explain(f.World))
}

// staysCopied checks for a while that the copies equal the source all the time.
func (f *family) staysCopied(ctx context.Context, source client.Object, namespaces ...string) {
	GinkgoHelper()
	Consistently(ctx, func(ctx context.Context) error {
		for _, namespace := range namespaces {
			if err := f.differs(ctx, source, namespace); err != nil {
				return err
			}
		}
		return nil
	}).WithTimeout(test.Quiet(soon)).Should(Succeed(), explain(f.World))
}

// absent waits until no object of that kind and name is in the namespaces.
func (f *family) absent(ctx context.Context, object client.Object, namespaces ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]string, error) { return f.standing(ctx, object, namespaces...) }).
		Should(BeEmpty(), explain(f.World))
}

// staysAbsent checks for a while that no such object appears.
func (f *family) staysAbsent(ctx context.Context, object client.Object, namespaces ...string) {
	GinkgoHelper()
	Consistently(ctx, func(ctx context.Context) ([]string, error) { return f.standing(ctx, object, namespaces...) }).
		WithTimeout(test.Quiet(soon)).Should(BeEmpty())
}

// standing are the namespaces that hold an object of that kind and name.
func (f *family) standing(ctx context.Context, object client.Object, namespaces ...string) ([]string, error) {
	var there []string
	for _, namespace := range namespaces {
		_, err := f.whole(ctx, object, namespace)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			there = append(there, namespace)
		}
	}
	return there, nil
}

func (f *family) whole(ctx context.Context, object client.Object, namespace string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kindOf(object))
	return u, f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: object.GetName()}, u)
}

// differs returns how the object in a namespace differs from what a copy of the source should be.
func (f *family) differs(ctx context.Context, source client.Object, namespace string) error {
	from, err := f.whole(ctx, source, source.GetNamespace())
	if err != nil {
		return err
	}
	found, err := f.whole(ctx, source, namespace)
	if err != nil {
		return err
	}
	mode := from.GetLabels()[v1alpha1.LabelPropagate]
	if mode == "" {
		mode = v1alpha1.ModeUpdate
	}
	if hash := found.GetAnnotations()[v1alpha1.AnnotationSourceHash]; !strings.HasPrefix(hash, mode+":") {
		return fmt.Errorf("%s: the hash is %q, not of mode %s", namespace, hash, mode)
	}
	labels := travelling(from.GetLabels())
	labels[v1alpha1.LabelInheritedFrom] = source.GetNamespace()
	if diff := cmp.Diff(labels, found.GetLabels()); diff != "" {
		return fmt.Errorf("%s: labels (-want +got):\n%s", namespace, diff)
	}
	// The controllers of some kinds annotate copies by themselves.
	if diff := cmp.Diff(travelling(from.GetAnnotations()), travelling(found.GetAnnotations())); diff != "" {
		return fmt.Errorf("%s: annotations (-want +got):\n%s", namespace, diff)
	}
	for _, u := range []*unstructured.Unstructured{from, found} {
		delete(u.Object, "metadata")
		delete(u.Object, "status")
	}
	if diff := cmp.Diff(from.Object, found.Object); diff != "" {
		return fmt.Errorf("%s: content (-want +got):\n%s", namespace, diff)
	}
	return nil
}

// travelling are the keys of a source that its copies get.
func travelling(keys map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range keys {
		domain, _, _ := strings.Cut(key, "/")
		if !v1alpha1.IsReservedKey(key) && !strings.HasSuffix(domain, "kubernetes.io") && domain != "argocd.argoproj.io" {
			kept[key] = value
		}
	}
	return kept
}
