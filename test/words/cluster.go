// Package words has the words that the suites of Ginkgo share: they create and delete objects, wait for them, and read what the operator
// reports. A word that can't do its work fails the case. It waits as long as the suite's patience.
package words

import (
	"context"
	"reflect"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// Cluster is a World as the cluster admin sees and changes it. A suite's own fixture embeds it.
type Cluster struct{ *devcluster.World }

// Create creates objects in their order. Afterwards each is as the API server stored it.
func (c Cluster) Create(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(test.UntilWebhookAnswers(func() error { return c.Admin().Create(ctx, object) })).
			To(gomega.Succeed(), "creating %T %s", object, client.ObjectKeyFromObject(object))
	}
}

// Delete deletes objects that exist.
func (c Cluster) Delete(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(test.UntilWebhookAnswers(func() error { return c.Admin().Delete(ctx, object) })).
			To(gomega.Succeed(), "deleting %T %s", object, client.ObjectKeyFromObject(object))
	}
}

// LetGo removes all finalizers of objects, such as the one that build.Held has set. Others may write the objects at the same time.
func (c Cluster) LetGo(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		patch := client.RawPatch(apitypes.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		gomega.Expect(c.Admin().Patch(ctx, object, patch)).To(gomega.Succeed(), "finalizers of %T %s", object, client.ObjectKeyFromObject(object))
	}
}

// Read reads the object again each time, for Eventually. A Get into a used object would keep the fields that the answer lacks.
func (c Cluster) Read(object client.Object) func(context.Context) error {
	key, into := client.ObjectKeyFromObject(object), reflect.ValueOf(object).Elem()
	return func(ctx context.Context) error {
		now := reflect.New(into.Type())
		read := now.Interface().(client.Object)
		read.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		err := c.Admin().Get(ctx, key, read)
		if err == nil {
			into.Set(now.Elem())
		}
		return err
	}
}

// look reads an object, which stays as it is: so it can be created again.
func (c Cluster) look(object client.Object) func(context.Context) error {
	return c.Read(object.DeepCopyObject().(client.Object))
}

// Exists waits until objects exist, and reads them.
func (c Cluster) Exists(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(ctx, c.Read(object)).Should(gomega.Succeed(), "%T %s exists", object, client.ObjectKeyFromObject(object))
	}
}

// Gone waits until objects don't exist.
func (c Cluster) Gone(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(ctx, c.look(object)).Should(BeNotFound(), "%T %s is gone", object, client.ObjectKeyFromObject(object))
	}
}

// Absent expects that objects don't exist now.
func (c Cluster) Absent(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(c.look(object)(ctx)).To(BeNotFound(), "%T %s", object, client.ObjectKeyFromObject(object))
	}
}

// StaysAbsent expects that an object doesn't exist for that time, which test.Quiet shortens.
func (c Cluster) StaysAbsent(ctx context.Context, d time.Duration, object client.Object) {
	ginkgo.GinkgoHelper()
	gomega.Consistently(ctx, c.look(object)).WithTimeout(test.Quiet(d)).
		Should(BeNotFound(), "%T %s", object, client.ObjectKeyFromObject(object))
}

// BeNotFound matches the API server's answer that an object doesn't exist.
func BeNotFound() types.GomegaMatcher { return gomega.MatchError(apierrors.IsNotFound, "is a 404") }

// Mark is the present place in the audit log, from where on requests count.
func (c Cluster) Mark(ctx context.Context) audit.Position {
	ginkgo.GinkgoHelper()
	mark, err := c.World.Mark(ctx)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "marking a place in the audit log")
	return mark
}
