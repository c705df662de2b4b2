package lnamespace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Guardrails are the kinds by which a cluster admin limits tenants. ClusterRole warren-manager lets the operator list them
// under every configuration.
var Guardrails = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ResourceQuota"), corev1.SchemeGroupVersion.WithKind("LimitRange"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// UncopiedGuardrails finds guardrails that limit nobody: objects of templates with the label propagate, of kinds that the
// operator doesn't copy. It doesn't watch them, because few templates have any: it reads a template when a tenant first
// references it, and then again after a time that doubles up to longestLook.
type UncopiedGuardrails struct {
	// Live reads from the API server, without a cache.
	Live client.Reader
	// Kinds are the Guardrails that the operator doesn't copy.
	Kinds []schema.GroupVersionKind

	reads singleflight.Group
	mu    sync.Mutex // guards last
	last  map[string]look
}

// look is what a template had when it was last read.
type look struct {
	objects []string // as KIND "NAME"
	ok      bool     // false: the read failed
	at      time.Time
	pause   time.Duration // until the next read
}

const (
	// shortestLook is also the time until the next read while there are such objects: a cluster admin is mending that.
	shortestLook = time.Minute
	longestLook  = time.Hour
	// mostListed is how many objects of one kind and template are read: the message names fewer.
	mostListed = 2 * mostCopies
)

// find returns the objects of these templates that limit nobody, and the time until it should be asked again. ok is false
// if a read failed.
func (u *UncopiedGuardrails) find(ctx context.Context, templates []string) (objects []string, again time.Duration, ok bool) {
	if u == nil || len(u.Kinds) == 0 || len(templates) == 0 {
		return nil, 0, true
	}
	again, ok = longestLook, true
	for _, template := range templates {
		l := u.lookAt(ctx, template)
		for _, object := range l.objects {
			objects = append(objects, object+" of template "+template)
		}
		again, ok = min(again, max(time.Second, time.Until(l.at.Add(l.pause)))), ok && l.ok
	}
	return objects, again, ok
}

// lookAt returns the last look at a template, and reads it again when that is due. Tenants that ask at one moment share
// one read.
func (u *UncopiedGuardrails) lookAt(ctx context.Context, template string) look {
	u.mu.Lock()
	last, known := u.last[template]
	u.mu.Unlock()
	if known && time.Since(last.at) < last.pause {
		return last
	}
	now, _, _ := u.reads.Do(template, func() (any, error) {
		now := look{ok: true, at: time.Now(), pause: shortestLook}
		var err error
		if now.objects, err = u.readTemplate(ctx, template); err != nil {
			log.FromContext(ctx).Info("reading guardrails that are not copied", "template", template, "error", err.Error())
			now.objects, now.ok = last.objects, false
		}
		if known && now.ok && len(now.objects) == 0 {
			now.pause = min(2*last.pause, longestLook)
		}
		u.recordLook(template, now)
		return now, nil
	})
	return now.(look)
}

// recordLook records a look, and drops those at templates that no tenant references any more.
func (u *UncopiedGuardrails) recordLook(template string, now look) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]look{}
	}
	for name, l := range u.last {
		if time.Since(l.at) > 2*longestLook {
			delete(u.last, name)
		}
	}
	u.last[template] = now
}

// readTemplate lists the metadata of the objects in a template that ask for copies. A kind that the operator may not list
// has none: an older ClusterRole lacks that right, and the rest of the operator needs it for nothing.
func (u *UncopiedGuardrails) readTemplate(ctx context.Context, template string) ([]string, error) {
	asks, err := labels.NewRequirement(v1alpha1.LabelPropagate, selection.In, []string{v1alpha1.ModeUpdate, v1alpha1.ModeCreate})
	if err != nil {
		return nil, err
	}
	original, err := labels.NewRequirement(v1alpha1.LabelInheritedFrom, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, kind := range u.Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := u.Live.List(ctx, list, client.InNamespace(template), client.Limit(mostListed),
			client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*asks, *original)})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing objects of kind %s in template %s: %w", kind.Kind, template, err)
		}
		for _, object := range list.Items {
			objects = append(objects, fmt.Sprintf("%s %q", kind.Kind, object.Name))
		}
	}
	return objects, nil
}

// findUncopied returns that the root's templates have guardrails that are not copied; empty if they have none. If that
// can't be read, what was reported before (was, which may be nil) stays.
func (r *Reconciler) findUncopied(ctx context.Context, s *forest.Snapshot, root string,
	was *metav1.Condition) (found templateTrouble, again time.Duration) {
	sources, _ := s.Sources(root)
	objects, again, ok := r.Uncopied.find(ctx, sources.Names)
	switch {
	case len(objects) > 0:
		return templateTrouble{v1alpha1.ReasonKindNotPropagated, "these objects have the label propagate, but the operator copies no " +
			"objects of their kinds, so they limit nothing here: " + forest.First(objects, mostCopies, ", ") + "; a cluster admin adds " +
			"the kinds to propagation.kinds, or takes the label off"}, again
	case !ok && was != nil && was.Reason == string(v1alpha1.ReasonKindNotPropagated):
		return templateTrouble{v1alpha1.ReasonKindNotPropagated, was.Message}, again
	}
	return templateTrouble{}, again
}
