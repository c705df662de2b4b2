package migrate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// The fields of a HierarchyConfiguration that the migration may write: their names in its spec. Record.Before uses the
// same names as keys for the values that the fields had before the migration.
const (
	cascadingField   = "allowCascadingDeletion"
	labelsField      = "propagatedLabels"
	annotationsField = "propagatedAnnotations"
)

// valuesBefore returns the values that Warren's keys have on objects that the migration may write, before its first
// write: undoing restores them. An object without such keys is left out, unless the migration would create it if it
// were missing: then its empty entry shows that it existed.
func (p *planner) valuesBefore() map[string]map[string]string {
	found := map[string]map[string]string{}
	note := func(object Object, keys map[string]string, wanted ...string) {
		for _, key := range wanted {
			if value := keys[key]; value != "" {
				if found[object.idWithGroup()] == nil {
					found[object.idWithGroup()] = map[string]string{}
				}
				found[object.idWithGroup()][key] = value
			}
		}
	}
	for name, place := range p.joining {
		note(objectFromMetadata(p.Namespaces[name]), p.Namespaces[name].Labels,
			slices.Collect(maps.Keys(place.namespaceLabels()))...)
		if sub := p.Subs[place.Parent+"/"+name]; sub != nil {
			found[warrenObject("SubNamespace", place.Parent, name).idWithGroup()] = map[string]string{}
		}
		if hc := p.Hierarchies[name]; hc != nil {
			found[warrenObject("HierarchyConfiguration", name, hc.Name).idWithGroup()] = hierarchyFieldsOf(hc.Spec)
		}
	}
	for name := range p.Tenants {
		if p.LNamespaces[name] != nil {
			found[warrenObject("LNamespace", "", name).idWithGroup()] = map[string]string{}
		}
	}
	for object := range p.Quotas.ours {
		found[object.idWithGroup()] = map[string]string{}
	}
	for _, object := range p.sourcesAlreadyMade() {
		found[objectFromMetadata(object).idWithGroup()] = map[string]string{}
	}
	for _, object := range p.objectsToWrite() {
		note(objectFromMetadata(object), object.Labels, v1alpha1.LabelPropagate, v1alpha1.LabelInheritedFrom)
		if mark := p.peer.copyLabel; mark.value != "" && object.Labels[mark.key] == mark.value {
			note(objectFromMetadata(object), object.Labels, mark.key)
		}
		note(objectFromMetadata(object), object.Annotations, v1alpha1.AnnotationSelect, v1alpha1.AnnotationSourceHash)
	}
	return found
}

// objectsToWrite returns the objects that the migration may write: sources and copies of the peer, the other operator,
// and objects with the kind and name of a copy.
func (p *planner) objectsToWrite() (objects []*metav1.PartialObjectMetadata) {
	type name struct {
		kind schema.GroupKind
		name string
	}
	named := map[name]bool{}
	for slot := range p.Copies {
		named[name{slot.Kind, slot.Name}] = true
	}
	for slot, object := range p.objectsBySlot() {
		if _, said := p.Sources[slot]; said || named[name{slot.Kind, slot.Name}] {
			objects = append(objects, object)
		}
	}
	return objects
}

// hierarchyFieldsOf returns the fields of a HierarchyConfiguration that the migration may write.
func hierarchyFieldsOf(spec v1alpha1.HierarchyConfigurationSpec) map[string]string {
	return map[string]string{
		cascadingField: strconv.FormatBool(spec.AllowCascadingDeletion),
		labelsField:    joinKeys(spec.PropagatedLabels), annotationsField: joinKeys(spec.PropagatedAnnotations),
	}
}

func joinKeys(keys []v1alpha1.MetadataKey) string {
	names := make([]string, 0, len(keys))
	for _, key := range keys {
		names = append(names, string(key))
	}
	return strings.Join(names, ",")
}

// valueBefore returns the value of a key of Warren's before the migration; "" if there was none.
func (r *Record) valueBefore(object Object, key string) string {
	return r.Before[object.idWithGroup()][key]
}

// existedBefore reports whether the record shows by an entry, maybe an empty one, that an object is older than the
// migration.
func (r *Record) existedBefore(object Object) bool {
	_, there := r.Before[object.idWithGroup()]
	return there
}

// keysAddedSince returns those of keys that a field of an object did not have before the migration.
func (r *Record) keysAddedSince(object Object, field string, keys []string) []string {
	before := strings.Split(r.valueBefore(object, field), ",")
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(before, key) })
}

// isMadeByMigration reports whether this migration, and not an earlier one, made an object that is not being deleted.
func (r *Record) isMadeByMigration(object Object, now metav1.Object) bool {
	return now.GetLabels()[v1alpha1.LabelCreatedBy] == madeHere && now.GetDeletionTimestamp() == nil &&
		!r.existedBefore(object)
}
