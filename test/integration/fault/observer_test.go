package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// kinds are the kinds of the objects that make up a state. The observer watches them.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	v1alpha1.GroupVersion.WithKind("LNamespace"),
	v1alpha1.GroupVersion.WithKind("SubNamespace"),
	v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"),
	v1alpha1.GroupVersion.WithKind("ResourceDistribution"),
	{Group: "example.com", Version: "v1", Kind: "Widget"},
}

// observer watches all objects of these kinds from the start of the operator on. It has its own connection to the API server, which no
// fault affects.
type observer struct {
	mu      sync.Mutex // guards what follows
	objects map[string]*unstructured.Unstructured
	events  []event
	broken  error
}

// event is one event of a watch.
type event struct {
	// at is the resourceVersion. etcd counts the writes of all objects together, so it orders events of different kinds.
	at     int64
	kind   watch.EventType
	object *unstructured.Unstructured
	before *unstructured.Unstructured // nil for an object that is new
}

// placeOf is the kind, namespace and name of an object.
func placeOf(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// observe watches until the case, or the suite, ends.
func observe(w *devcluster.World) *observer {
	GinkgoHelper()
	o := &observer{objects: map[string]*unstructured.Unstructured{}}
	ctx, enough := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		Eventually(func() error { return w.Admin().List(ctx, list) }).Should(Succeed(), "a CRD that is new is served soon")
		for i := range list.Items {
			o.objects[placeOf(&list.Items[i])] = &list.Items[i]
		}
		watching.Go(func() {
			for from := list.GetResourceVersion(); ctx.Err() == nil && o.isWhole(); {
				from = o.follow(ctx, w, list, from)
			}
		})
	}
	DeferCleanup(func() {
		enough()
		watching.Wait()
	})
	return o
}

func (o *observer) isWhole() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.broken == nil
}

// follow takes the events of a kind, from a resourceVersion on, until the API server ends the watch. It returns the resourceVersion from
// which to watch next.
func (o *observer) follow(ctx context.Context, w *devcluster.World, list *unstructured.UnstructuredList, from string) (last string) {
	events, err := w.Admin().Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true}})
	if err != nil {
		select { // the API server may be starting again
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return from
	}
	for e := range events.ResultChan() {
		if object, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
			from = object.GetResourceVersion()
			if e.Type != watch.Bookmark { // without bookmarks, the last event of a kind that rests would be too old to watch from
				o.take(e.Type, object)
			}
			continue
		}
		if apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			if version, same := o.listAgain(ctx, w, list); same {
				from = version
				continue
			}
		}
		o.mu.Lock()
		if ctx.Err() == nil {
			o.broken = fmt.Errorf("watching %s: %v", list.GetKind(), e.Object)
		}
		o.mu.Unlock()
	}
	return from
}

// listAgain reports whether the objects of a kind are as the last event left them, and at which resourceVersion. On a busy machine, the
// API server may begin to cache a new kind only after the observer's list. It then refuses to watch from that list's resourceVersion.
func (o *observer) listAgain(ctx context.Context, w *devcluster.World, list *unstructured.UnstructuredList) (version string, same bool) {
	now := &unstructured.UnstructuredList{}
	now.SetGroupVersionKind(list.GroupVersionKind())
	if w.Admin().List(ctx, now) != nil {
		return "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	left := 0
	for _, known := range o.objects {
		if known.GetKind()+"List" == list.GetKind() {
			left++
		}
	}
	for i := range now.Items {
		known := o.objects[placeOf(&now.Items[i])]
		if known == nil || known.GetResourceVersion() != now.Items[i].GetResourceVersion() {
			return "", false
		}
		left--
	}
	return now.GetResourceVersion(), left == 0
}

func (o *observer) take(kind watch.EventType, object *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	place := placeOf(object)
	o.events = append(o.events, event{at: at, kind: kind, object: object, before: o.objects[place]})
	if o.objects[place] = object; kind == watch.Deleted {
		delete(o.objects, place)
	}
}

// eventsOf are the events of a scene's objects, in their order.
func (o *observer) eventsOf(key string) []event {
	o.mu.Lock()
	defer o.mu.Unlock()
	var own []event
	for _, e := range o.events {
		if isIn(key, e.object) {
			own = append(own, e)
		}
	}
	slices.SortStableFunc(own, func(a, b event) int { return int(a.at - b.at) })
	return own
}

// objectsOf are the objects of a scene that exist.
func (o *observer) objectsOf(key string) ([]*unstructured.Unstructured, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var own []*unstructured.Unstructured
	for _, object := range o.objects {
		if isIn(key, object) {
			own = append(own, object)
		}
	}
	return own, o.broken
}

// isIn reports whether an object is of a scene.
func isIn(key string, u *unstructured.Unstructured) bool {
	return strings.Contains(u.GetNamespace()+"/"+u.GetName(), key+"-") && u.GetName() != "kube-root-ca.crt"
}
