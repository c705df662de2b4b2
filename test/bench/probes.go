package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// probe is something that the quiet tenant asks for while another floods.
type probe struct {
	name string // such as "Secret to its copy"
	// watched returns what to watch. An event of this watch shows that the operator has done what the probe asked for.
	watched func() (client.ObjectList, []client.ListOption)
	// ask sends the request for an object with this name; n is a different number for each request.
	ask func(ctx context.Context, f *flood, name string, n int) error
	// isDone reports whether an object of the watch shows that it is done.
	isDone func(object client.Object, name string, n int) bool
	// tidy, if it is not nil, deletes what ask has made.
	tidy func(ctx context.Context, f *flood, name string) error
}

var (
	copied = probe{
		name: "Secret to its copy",
		watched: func() (client.ObjectList, []client.ListOption) {
			secrets := &metav1.PartialObjectMetadataList{}
			secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
			return secrets, []client.ListOption{client.InNamespace(childName(0)), client.HasLabels{v1alpha1.LabelInheritedFrom}}
		},
		ask: func(ctx context.Context, f *flood, name string, _ int) error {
			return f.Admin().Create(ctx, build.Source(newSecret(name, "a"), v1alpha1.ModeUpdate))
		},
		isDone: func(object client.Object, name string, _ int) bool {
			return object.GetName() == name && object.GetDeletionTimestamp() == nil
		},
		tidy: func(ctx context.Context, f *flood, name string) error {
			return f.Admin().Delete(ctx, newSecret(name, "a"))
		},
	}
	child = probe{
		name: "SubNamespace until it is Ready",
		watched: func() (client.ObjectList, []client.ListOption) {
			return &v1alpha1.SubNamespaceList{}, []client.ListOption{client.InNamespace(root)}
		},
		ask: func(ctx context.Context, f *flood, name string, _ int) error {
			return f.Admin().Create(ctx, build.SubNamespace(root, name))
		},
		isDone: func(object client.Object, name string, _ int) bool {
			sub, ok := object.(*v1alpha1.SubNamespace)
			return ok && sub.Name == name && isTrue(sub.Status.Conditions, v1alpha1.ConditionReady)
		},
	}
	inheritedLabel = probe{
		name: "label until it is inherited",
		watched: func() (client.ObjectList, []client.ListOption) {
			return &corev1.NamespaceList{}, []client.ListOption{client.MatchingLabels{corev1.LabelMetadataName: childName(0)}}
		},
		ask: func(ctx context.Context, f *flood, _ string, n int) error {
			return f.setInherited(ctx, root, versionNumbered(n))
		},
		isDone: func(object client.Object, _ string, n int) bool {
			return object.GetLabels()[inherited] == versionNumbered(n)
		},
	}
)

// versionNumbered is a value of the label called inherited, another one for each n.
func versionNumbered(n int) string { return fmt.Sprintf("v1.%d", n) }

func isTrue(conditions []metav1.Condition, kind v1alpha1.ConditionType) bool {
	c := v1alpha1.FindCondition(conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}

// timings are how long each request of the quiet tenant took to be written, and from then on until it was done.
type timings struct{ written, settled []time.Duration }

// timeOthers sends the requests of the quiet tenant, one after the other, and times them.
func (f *flood) timeOthers(ctx context.Context, prefix string) (t timings, err error) {
	list, options := f.probe.watched()
	events, err := f.As(controlplane.Admin).Watch(ctx, list, options...)
	if err != nil {
		return t, err
	}
	defer events.Stop()
	for n := range f.scale.probes() {
		name := fmt.Sprintf("%s-%d", prefix, n)
		begin := time.Now()
		if err := f.probe.ask(ctx, f, name, n); err != nil {
			return t, err
		}
		written := time.Now()
		if err := f.awaitDone(ctx, events, name, n); err != nil {
			return t, err
		}
		t.written, t.settled = append(t.written, written.Sub(begin)), append(t.settled, time.Since(written))
		if f.probe.tidy == nil {
			continue
		}
		if err := f.probe.tidy(ctx, f, name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// awaitDone waits until a watch has shown that what was asked for is done, for two minutes at most.
func (f *flood) awaitDone(ctx context.Context, events watch.Interface, name string, n int) error {
	late := time.After(2 * time.Minute)
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return errors.New("a watch ended")
			}
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted && f.probe.isDone(object, name, n) {
				return nil
			}
		case <-late:
			return fmt.Errorf("%s: a %s took more than two minutes", name, f.probe.name)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
