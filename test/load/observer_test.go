package load_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// labelStranger is on objects that nobody changes or deletes, the operator least of all.
const labelStranger = "example.com/stranger"

// observe watches until ctx is done, with a client of its own. It records what the operator does, and whether it does anything else.
func (l *load) observe(ctx context.Context) error {
	strangers, err := labels.Parse(labelStranger)
	if err != nil {
		return err
	}
	part := map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}:   {Label: strangers},
		&rbacv1.RoleBinding{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelAccess: v1alpha1.AccessUsers})},
	}
	l.seen, err = cache.New(l.Config(controlplane.Admin), cache.Options{Scheme: devcluster.Scheme(), ByObject: part})
	if err != nil {
		return fmt.Errorf("making the observer's cache: %w", err)
	}
	go func() {
		if err := l.seen.Start(ctx); err != nil {
			l.blame(failed, "observing: %v", err)
		}
	}()
	for _, object := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Namespace{}, &rbacv1.RoleBinding{}, &v1alpha1.LNamespace{}, &v1alpha1.SubNamespace{},
	} {
		informer, err := l.seen.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("observing %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(l); err != nil {
			return fmt.Errorf("observing %T: %w", object, err)
		}
	}
	return nil
}

// OnAdd implements toolscache.ResourceEventHandler.
func (l *load) OnAdd(object any, _ bool) { l.OnUpdate(nil, object) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (l *load) OnUpdate(before, object any) {
	switch o := object.(type) {
	case *v1alpha1.LNamespace:
		if c := v1alpha1.FindCondition(o.Status.Conditions, v1alpha1.ConditionAccessReady); c != nil && c.Status == "True" {
			l.seeReady(o.Name, c.ObservedGeneration)
		}
	case *rbacv1.RoleBinding:
		l.seeBinding(o)
	case *corev1.Namespace:
		if o.DeletionTimestamp != nil {
			l.seeEnd(o)
		}
	case client.Object:
		if old, ok := before.(client.Object); ok && isStranger(o) && old.GetResourceVersion() != o.GetResourceVersion() {
			l.blame(wrongStrangers, "%T %s/%s was changed: %v", o, o.GetNamespace(), o.GetName(), o.GetManagedFields())
		}
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (l *load) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	o, ok := object.(client.Object)
	if _, isNamespace := o.(*corev1.Namespace); ok && (isNamespace || isStranger(o)) {
		l.seeEnd(o)
	}
}

func isStranger(o client.Object) bool { _, ok := o.GetLabels()[labelStranger]; return ok }

// seeEnd records the end of a namespace, or of an object in it. Somebody must have asked for the deletion of the namespace.
func (l *load) seeEnd(o client.Object) {
	name := o.GetNamespace()
	if name == "" {
		name = o.GetName()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[name]; p == nil || !p.doomed {
		l.blameLocked(wrongStrangers, "%T %s/%s was deleted, and nobody asked for it", o, o.GetNamespace(), o.GetName())
	}
}

// crash kills the operator at every tick of an interval, and starts it again, until ctx is done. It ends with the operator up.
func (l *load) crash(ctx, work context.Context, interval time.Duration) {
	for tick := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p := l.Operator.Process(); !p.Running() {
			l.blame(failed, "the operator ended by itself: %s", p.LogTail(20))
		}
		_ = l.Operator.Kill() // it fails where the operator has ended by itself
		begin := time.Now()
		if err := l.Operator.Start(work); err != nil {
			l.blame(failed, "starting the operator: %v", err)
		}
		l.record("the operator is killed and ready again", begin)
	}
}
