package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/rules"
)

// distributions plans the copies of ResourceDistributions.
type distributions struct {
	api      client.Client
	f        *forest.Snapshot
	settings distribute.Settings
	covered  func(schema.GroupKind) bool
	reader   *distribute.Reader
	// made holds, for each copy that the plan creates, its distribution. For other distributions that slot (kind, namespace and
	// name) is in conflict then.
	made   map[propagate.Slot]string
	writes []Write
	notes  []string
}

// planDistributions plans for all ResourceDistributions, in the order of their names; for none where their CRD is not installed.
func planDistributions(ctx context.Context, o Options, f *forest.Snapshot) (*distributions, error) {
	settings, covered := rules.ForDistributions(o.Config, o.OperatorNamespace)
	p := &distributions{api: o.API, f: f, settings: settings, covered: covered, reader: distribute.NewReader(), made: map[propagate.Slot]string{}}
	if !o.Config.Enabled(config.ControllerDistribution) {
		return p, nil
	}
	living := map[string]*v1alpha1.ResourceDistribution{}
	err := paging.Each(ctx, p.api, &v1alpha1.ResourceDistributionList{}, pageSize, func(object client.Object) error {
		living[object.GetName()] = object.(*v1alpha1.ResourceDistribution)
		return nil
	})
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return p, nil
	case apierrors.IsForbidden(err):
		p.notes = append(p.notes, "the copies of ResourceDistributions: you may not list ResourceDistributions")
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("reading the ResourceDistributions: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(living)) {
		if err := p.planOne(ctx, living[name]); err != nil {
			return nil, err
		}
	}
	for _, kind := range settings.Kinds {
		if err := p.planFarewells(ctx, kind, living); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// planOne plans for one ResourceDistribution.
func (p *distributions) planOne(ctx context.Context, rd *v1alpha1.ResourceDistribution) error {
	d := distribute.Read(rd, p.settings)
	why := ""
	switch {
	case d.Deleting:
		why = "it is being deleted: the garbage collector deletes its copies, or leaves them, as its deletionPolicy says"
	case d.Problem != "":
		why = d.Why
	case d.Suspend:
		why = "it is suspended; kubectl warren distribution plan " + d.Name + " says what waits"
	}
	if why != "" {
		p.notes = append(p.notes, "ResourceDistribution "+d.Name+": "+why)
		return nil
	}
	d.Named, _ = d.RecordNames(p.f, d.Named) // as the operator does before anything else
	targets, err := p.readTargets(ctx, d)
	if unread := p.noteUnread(d.Template.Kind.GroupKind(), err); unread || err != nil {
		return ignoreIf(unread, err)
	}
	gate := p.gate(d, targets, rd.Status.Admitted)
	for _, namespace := range slices.Sorted(maps.Keys(targets)) {
		p.noteAction(d, targets[namespace], gate)
	}
	return nil
}

// readTargets reads, by namespace, the objects of d's kind and name: their metadata, and the whole object where a plan depends on
// its content.
func (p *distributions) readTargets(ctx context.Context, d *distribute.Distribution) (map[string]*distribute.Target, error) {
	targets := map[string]*distribute.Target{}
	for namespace := range p.f.All() {
		t := &distribute.Target{Namespace: namespace, Choice: d.Choose(p.f, namespace, p.settings.Protected)}
		if by := p.made[d.Template.Slot(namespace)]; by != "" {
			t.Copy = &distribute.Copy{Ours: true, By: by}
		}
		targets[namespace] = t
	}
	list := metadataOf(d.Template.Kind)
	if d.Drift == v1alpha1.DriftRevert || d.Conflict == v1alpha1.ConflictAdoptIdentical {
		list = objectsOf(d.Template.Kind)
	}
	err := paging.Each(ctx, p.api, list, pageSize, func(object client.Object) error {
		if t := targets[object.GetNamespace()]; t != nil {
			return p.readTarget(d, t, object)
		}
		return nil
	}, client.MatchingFields{"metadata.name": d.Template.Name})
	return targets, err
}

// readTarget adds an object of d's kind and name to its target, and compares its content with the template if it was read whole.
func (p *distributions) readTarget(d *distribute.Distribution, t *distribute.Target, object client.Object) error {
	metadata, err := metadataOfObject(object)
	if err != nil {
		return err
	}
	whole, isWhole := object.(*unstructured.Unstructured)
	if _, labelled := metadata.Labels[v1alpha1.LabelDistributedBy]; labelled {
		t.Copy = p.reader.Copy(d.Template.Slot(t.Namespace), metadata)
		t.Copy.Known = true
		t.Copy.Drifted = isWhole && (!d.Template.Holds(whole.Object, t.Copy.Foreign) || !d.MetaHolds(whole.Object))
		return nil
	}
	t.Obstacle = distribute.ReadObstacle(metadata, p.isSource(d, metadata))
	if t.Obstacle.Examined = isWhole; isWhole {
		t.Obstacle.Identical = d.Template.Identical(whole.Object)
	}
	return nil
}

// isSource says whether propagation copies the object.
func (p *distributions) isSource(d *distribute.Distribution, object metav1.Object) bool {
	mode, opted := object.GetLabels()[v1alpha1.LabelPropagate]
	if opted || !p.covered(d.Template.Kind.GroupKind()) {
		return opted && mode != v1alpha1.ModeNone
	}
	return p.f.Place(object.GetNamespace()).InTree()
}

// gate returns what a review of all targets allows: whether copies may be created, and which stay outdated. All batches of a
// roll-out are planned at once.
func (p *distributions) gate(d *distribute.Distribution, targets map[string]*distribute.Target, admitted string) distribute.Gate {
	gate := distribute.Gate{Create: true, Held: map[string]bool{}}
	var outdated []string
	count, blocked := 0, false
	for namespace, t := range targets {
		a := d.Plan(*t, gate)
		ours := t.Copy != nil && t.Copy.Ours && t.Copy.By == d.Name
		if blocks, _ := d.Blocks(a, ours); blocks && d.AllOrNothing() && admitted != d.Check {
			blocked = true
		}
		if a.State == distribute.None || !ours || t.Copy.Terminating {
			continue
		}
		if count++; t.Copy.Content != d.Template.Content {
			outdated = append(outdated, namespace)
		}
	}
	d.Rollout.Order(p.f, outdated)
	for _, namespace := range outdated[len(d.Rollout.Open(outdated, count)):] {
		gate.Held[namespace] = true
	}
	gate.Create = !blocked
	return gate
}

// planFarewells plans for copies whose ResourceDistribution is deleted.
func (p *distributions) planFarewells(ctx context.Context, kind schema.GroupVersionKind, living map[string]*v1alpha1.ResourceDistribution) error {
	err := paging.Each(ctx, p.api, metadataOf(kind), pageSize, func(object client.Object) error {
		one := p.reader.Copy(slotOf(kind, object), object.(*metav1.PartialObjectMetadata))
		if living[one.By] != nil || distribute.Farewell(one) == distribute.Nothing {
			return nil
		}
		p.add(Update, kind, object.GetNamespace(), object.GetName(), fmt.Sprintf("ResourceDistribution %s is gone, and its deletionPolicy was Orphan: the copy loses Warren's keys and stays", one.By))
		return nil
	}, client.HasLabels{v1alpha1.LabelDistributedBy})
	return ignoreIf(p.noteUnread(kind.GroupKind(), err), err)
}

// noteUnread says whether an error means that the caller may not read a kind or that it isn't served, and adds one note per kind to
// the plan then.
func (p *distributions) noteUnread(kind schema.GroupKind, err error) bool {
	note := ""
	switch {
	case apierrors.IsForbidden(err):
		note = fmt.Sprintf("distributed copies of %s: you may not list this kind in all namespaces", kind)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		note = fmt.Sprintf("distributed copies of %s: the API server doesn't serve this kind", kind)
	default:
		return false
	}
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
	return true
}

func ignoreIf(ignored bool, err error) error {
	if ignored || err == nil {
		return nil
	}
	return fmt.Errorf("reading distributed copies: %w", err)
}
