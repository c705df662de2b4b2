package forest

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// BillingKeys are the keys of two labels on the namespaces of a tenant's tree. The labels name who pays, for tools that
// read labels and not the ledger. For an empty key, no label is written.
type BillingKeys struct{ CostCenter, Owner string }

// Has reports whether key is one of the two keys; "" never is.
func (b BillingKeys) Has(key string) bool {
	return key != "" && (key == b.CostCenter || key == b.Owner)
}

// BillingLabel is the label that one field of a tenant's billing gives to each namespace of its tree.
type BillingLabel struct {
	Key string
	// Field is the path of the field in the LNamespace, and Value is the field's value.
	Field, Value string
}

// isInvalid reports whether Value is no valid value of a label, so that the label is written nowhere.
func (l BillingLabel) isInvalid() bool { return len(validation.IsValidLabelValue(l.Value)) > 0 }

// listBillingLabels returns the billing labels of the namespaces in the tree of root: none where root belongs to no
// LNamespace. An empty field, or a field for which the configuration names no key, gives no label.
func listBillingLabels(s *Snapshot, root string) []BillingLabel {
	keys := s.rules.Billing
	tenant := s.TenantOf(root)
	if tenant == nil || keys == (BillingKeys{}) {
		return nil
	}
	labels := []BillingLabel{
		{keys.CostCenter, "spec.billing.costCenter", tenant.CostCenter},
		{keys.Owner, "spec.billing.owner", tenant.Owner},
	}
	return slices.DeleteFunc(labels, func(l BillingLabel) bool { return l.Key == "" || l.Value == "" })
}

// addBillingLabels adds the labels of the tenant's billing to e, which is written on n. path leads from the root to n;
// an empty path adds nothing. A key that has another value on n, set by a person or inherited, is left alone.
func addBillingLabels(s *Snapshot, n *Namespace, path []string, e *effective) {
	if len(path) == 0 {
		return
	}
	for _, label := range listBillingLabels(s, path[0]) {
		if !label.isInvalid() && !e.takesKey(n, label) {
			e.written[label.Key] = label.Value
		}
	}
}

// takesKey reports whether the key of label has another value on n, inherited or set by a person, so that the label
// can't be written. e is what n inherits.
func (e *effective) takesKey(n *Namespace, label BillingLabel) bool {
	if value, comes := e.written[label.Key]; comes {
		return value != label.Value
	}
	value, stands := n.Labels[label.Key]
	return stands && value != label.Value && !n.operatorKeys()[label.Key]
}

// BillingLabelProblems returns two results for the tenant called root. invalid has the labels that no namespace gets,
// because their values are no valid label values. taken has, by label key, the namespaces of the tenant's tree on which
// the key has another value.
func BillingLabelProblems(s *Snapshot, root string) (invalid []BillingLabel, taken map[string][]string) {
	taken = map[string][]string{}
	for _, label := range listBillingLabels(s, root) {
		if label.isInvalid() {
			invalid = append(invalid, label)
			continue
		}
		for _, name := range append([]string{root}, s.Subtree(root)...) {
			n := s.Namespace(name)
			value, stands := n.Labels[label.Key]
			if !stands || value == label.Value || n.Terminating || !s.Place(name).InTree() {
				continue
			}
			if inherited := inheritedKeys(s, name); inherited[0].takesKey(n, label) {
				taken[label.Key] = append(taken[label.Key], name)
			}
		}
	}
	return invalid, taken
}

// billsOtherwise reports whether the billing labels of the tree of root differ between s and old.
func billsOtherwise(s, old *Snapshot, root string) bool {
	return !slices.Equal(listBillingLabels(s, root), listBillingLabels(old, root))
}
