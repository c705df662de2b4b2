package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Changes that users made since --apply can make an undo impossible. The undo checks for such changes before each wave.
// So it begins to write only if it can write everything.

// checkChangesSince returns an error that names each namespace whose placement or move by users since --apply makes an
// undo impossible, and what to do about each.
func (u *undoer) checkChangesSince() error {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(u.Namespaces)) {
		now := u.Namespaces[name]
		if _, joined := u.joining[name]; joined || now.DeletionTimestamp != nil {
			continue
		}
		parent := now.Labels[v1alpha1.LabelParent]
		place, known := u.Places[name]
		switch _, below := u.joining[parent]; {
		case known && parent != "" && u.Peer.Record.valueBefore(objectFromMetadata(now), v1alpha1.LabelParent) == "" &&
			u.wasPlacedByMigration(name):
			found = append(found, fmt.Sprintf("namespace %s was moved below %s: %s", name, parent, place.describeReturn(name)))
		case below && u.leavesAllTrees(parent):
			found = append(found, fmt.Sprintf("namespace %s was placed below %s, so the undo can't take %s out of its tree: delete "+
				"%s, or move it below a namespace that the migration did not place", name, parent, parent, name))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("since --apply, %s; then give the command again", strings.Join(found, "; "))
}

// describeReturn returns how a user gives a namespace the place that it had after the migration.
func (p Place) describeReturn(name string) string {
	switch {
	case p.Parent != "":
		return fmt.Sprintf("move it back below %s (kubectl warren set %s --parent %s)", p.Parent, name, p.Parent)
	case p.Type == v1alpha1.TypeRoot:
		return fmt.Sprintf("make it a root again (kubectl warren set %s --root)", name)
	}
	return "take it out of that tree: remove its label " + v1alpha1.LabelParent
}

// wasPlacedByMigration reports whether the record of the migration has a place in a tree for a namespace.
func (u *undoer) wasPlacedByMigration(name string) bool {
	_, agreed := u.Peer.Record.Places[string(u.Namespaces[name].UID)]
	return agreed
}

// leavesAllTrees reports whether a namespace was in none of Warren's trees before the migration.
func (u *undoer) leavesAllTrees(name string) bool {
	object := objectFromMetadata(u.Namespaces[name])
	return cmp.Or(u.Peer.Record.valueBefore(object, v1alpha1.LabelType),
		u.Peer.Record.valueBefore(object, v1alpha1.LabelParent)) == ""
}

// undoInheritedValues restores the labels and annotations that namespaces had before they inherited other values. It
// keeps a value that a user has set since.
func (u *undoer) undoInheritedValues() {
	for _, change := range u.Peer.Record.Inherited {
		key, isAnnotation := strings.CutPrefix(change.Key, "@")
		for _, name := range change.Namespaces {
			now := u.Namespaces[name]
			if _, joined := u.joining[name]; !joined {
				continue
			}
			have := now.Labels
			if isAnnotation {
				have = now.Annotations
			}
			value, there := have[key]
			if there && (change.Becomes == nil || value != *change.Becomes) {
				continue
			}
			back, labels, annotations := map[string]string{key: ""}, map[string]string(nil), map[string]string(nil)
			if change.Was != nil {
				back[key] = *change.Was
			}
			if labels = back; isAnnotation {
				labels, annotations = nil, back
			}
			u.draft.addRelabelStep(Release, 0, now, labels, annotations)
		}
	}
}

// awaitedCleaning returns what the undo waits for, as the end of a message: "Warren to remove the inherited labels …
// from namespace N". N has left its tree and still has inherited keys. Only after Warren has removed them does the undo
// restore the earlier values. The text is "" if there is no such namespace, or in a phase other than Release.
func awaitedCleaning(wave []Step, c Cluster) string {
	if len(wave) == 0 || wave[0].Phase != Release || c.Peer.Record == nil {
		return ""
	}
	for _, change := range c.Peer.Record.Inherited {
		for _, name := range change.Namespaces {
			now := c.Namespaces[name]
			inTree := now != nil && cmp.Or(now.Labels[v1alpha1.LabelType], now.Labels[v1alpha1.LabelParent],
				now.Labels[v1alpha1.LabelTemplate]) != ""
			if now != nil && !inTree && now.Annotations[v1alpha1.AnnotationInherited] != "" {
				return "Warren to remove the inherited labels and annotations from namespace " + name
			}
		}
	}
	return ""
}

// isMadeByOperator reports whether the operator created a HierarchyConfiguration since the migration began, and its
// spec holds nothing but what the migration wrote.
func (u *undoer) isMadeByOperator(hc *v1alpha1.HierarchyConfiguration, place Place) bool {
	left := hc.Spec.DeepCopy()
	left.AllowCascadingDeletion = left.AllowCascadingDeletion && !place.Cascading
	left.PropagatedLabels, left.PropagatedAnnotations = withoutMetadataKeys(left.PropagatedLabels, place.Labels),
		withoutMetadataKeys(left.PropagatedAnnotations, place.Annotations)
	return hc.Labels[v1alpha1.LabelManagedBy] == v1alpha1.OperatorName && hc.DeletionTimestamp == nil &&
		!u.Peer.Record.existedBefore(warrenObject("HierarchyConfiguration", hc.Namespace, hc.Name)) &&
		equality.Semantic.DeepEqual(*left, v1alpha1.HierarchyConfigurationSpec{})
}
