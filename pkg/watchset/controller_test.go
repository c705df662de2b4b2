package watchset_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestControllerIsNamedOnce(t *testing.T) {
	t.Run("INF-I66 an object enqueues the owner of its controller's lease once, and no owner of another controller; a release leaves an "+
		"equal lease of Static Synced", controllerIsNamedOnce)
}

// Sources of a Controller get the events of that Controller's leases only. No source gets the events of Static's leases.
func controllerIsNamedOnce(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	bubble(t, a, quiet(), func(w *world) {
		mine, other := w.For("mine"), w.For("other")
		q, unused := w.queue(), w.queue()
		for _, start := range []error{
			mine.Source(secrets, nil).Start(w.Context(), q), mine.States().Start(w.Context(), q),
			other.Source(secrets, nil).Start(w.Context(), unused),
		} {
			if start != nil {
				t.Fatal(start)
			}
		}
		request := types.NamespacedName{Namespace: "a", Name: "x"}
		if _, err := mine.Acquire(request, in("a")); err != nil {
			t.Fatal(err)
		}
		kept, err := w.Acquire(watchset.Static("program"), in("a"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if q.Len() != 1 || unused.Len() != 0 {
			t.Errorf("%d requests of mine and %d of the other, want 1 and 0", q.Len(), unused.Len())
		}
		mine.Release(request)
		w.is(kept, watchset.Synced)
	})
}

func TestTypedReads(t *testing.T) {
	t.Run("INF-I67 GetAs and ListAs return the type that the lease holds; another type is ErrInvalid; no such object is NotFound", typedReads)
}

func typedReads(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		key := types.NamespacedName{Namespace: "a", Name: "s"}
		object, err := watchset.GetAs[*metav1.PartialObjectMetadata](l, key)
		if err != nil || object.Name != "s" {
			t.Errorf("%v, %v", object, err)
		}
		if all, err := watchset.ListAs[*metav1.PartialObjectMetadata](l, "", nil); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
		if _, err := watchset.GetAs[*corev1.Secret](l, key); !errors.Is(err, watchset.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid: the lease holds metadata", err)
		}
		key.Name = "t"
		if _, err := watchset.GetAs[*metav1.PartialObjectMetadata](l, key); !apierrors.IsNotFound(err) {
			t.Errorf("%v, want NotFound", err)
		}
	})
}

func TestClientReadsThroughTheSession(t *testing.T) {
	t.Run("INF-I68 Get of Session.Client reads through the session; Delete is sent by the writer", clientReadsThroughTheSession)
}

// A session's client reads what the session has leased itself. It passes all other calls to another client.
func clientReadsThroughTheSession(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	bubble(t, a, quiet(), func(w *world) {
		writer := &onlyDeletes{}
		c := w.For("mine").Session(types.NamespacedName{Name: "x"}).Client(writer)
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := c.Get(w.Context(), client.ObjectKey{Namespace: "a", Name: "s"}, secret); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(w.Context(), secret); err != nil || writer.deleted != "s" {
			t.Errorf("deleted %q, %v", writer.deleted, err)
		}
	})
}

type onlyDeletes struct {
	client.Client
	deleted string
}

func (c *onlyDeletes) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	c.deleted = object.GetName()
	return nil
}

func TestCacheOfAManager(t *testing.T) {
	t.Run("INF-I69 NewCache reads with the right, and is IsForbidden without it; informers and indexes are ErrInvalid, whose message names "+
		"the replacement", cacheOfAManager)
}

// A read-only cache reads the objects that it has rights to, reports which are forbidden, and refuses with a sentence what it can't do.
func cacheOfAManager(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	synctest.Test(t, func(t *testing.T) {
		c, err := watchset.NewCache(quiet())(a.config(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Start(ctx) }()
		if !c.WaitForCacheSync(ctx) {
			t.Error("the manager would not start")
		}
		synctest.Wait()
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "s"}, secret); err != nil {
			t.Error(err)
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "b", Name: "s"}, secret); !apierrors.IsForbidden(err) {
			t.Errorf("%v, want Forbidden", err)
		}
		_, informer := c.GetInformer(ctx, &corev1.Secret{})
		_, kind := c.GetInformerForKind(ctx, corev1.SchemeGroupVersion.WithKind("Secret"))
		for what, err := range map[string]error{
			"WatchesRawSource": informer, "Source": kind, "Session": c.RemoveInformer(ctx, &corev1.Secret{}),
			"label selector": c.IndexField(ctx, &corev1.Secret{}, "type", nil),
		} {
			if !errors.Is(err, watchset.ErrInvalid) || !strings.Contains(err.Error(), what) ||
				!strings.Contains(err.Error(), "cache does not offer ") {
				t.Errorf("%v, want ErrInvalid that names %s", err, what)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
