package forest

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// BillingKeys are the keys of the labels by which the namespaces of a tenant's tree say who pays, for tools that read labels and no
// ledger. An empty key writes nothing.
type BillingKeys struct{ CostCenter, Owner string }

// Has says whether key is one of them.
func (b BillingKeys) Has(key string) bool {
	return key != "" && (key == b.CostCenter || key == b.Owner)
}

// BillingLabel is what a field of a tenant's billing gives to each namespace of its tree.
type BillingLabel struct {
	Key string
	// Field is the path of the field in the LNamespace, and Value what stands there.
	Field, Value string
}

// invalid says whether the value can't be that of a label, and so is written nowhere.
func (l BillingLabel) invalid() bool { return len(validation.IsValidLabelValue(l.Value)) > 0 }

// listBillingLabels are the labels of the namespaces in the tree of root: none where it belongs to no LNamespace. A field that
// says nothing gives no label.
func (s *Snapshot) listBillingLabels(root string) []BillingLabel {
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

// addBillingLabels adds what the tenant's billing gives to n, whose way from its root is path. A key that stands on n by another
// hand, or comes from above, is left alone.
func (s *Snapshot) addBillingLabels(n *Namespace, path []string, e *effective) {
	if len(path) == 0 {
		return
	}
	for _, label := range s.listBillingLabels(path[0]) {
		if !label.invalid() && !e.takesKey(n, label) {
			e.written[label.Key] = label.Value
		}
	}
}

// takesKey says whether the key of label has another value on n, from above or by somebody's hand. e is what n inherits.
func (e *effective) takesKey(n *Namespace, label BillingLabel) bool {
	if value, comes := e.written[label.Key]; comes {
		return value != label.Value
	}
	value, stands := n.Labels[label.Key]
	return stands && value != label.Value && !n.operatorKeys()[label.Key]
}

// BillingLabelProblems are the labels of the tenant called root that no namespace gets, because their values can't be those of
// labels, and, by key, the namespaces of its tree on which a key has another value.
func (s *Snapshot) BillingLabelProblems(root string) (invalid []BillingLabel, taken map[string][]string) {
	taken = map[string][]string{}
	for _, label := range s.listBillingLabels(root) {
		if label.invalid() {
			invalid = append(invalid, label)
			continue
		}
		for _, name := range append([]string{root}, s.Subtree(root)...) {
			n := s.Namespace(name)
			value, stands := n.Labels[label.Key]
			if !stands || value == label.Value || n.Terminating || !s.Place(name).InTree() {
				continue
			}
			if inherited := s.inheritedKeys(name); inherited[0].takesKey(n, label) {
				taken[label.Key] = append(taken[label.Key], name)
			}
		}
	}
	return invalid, taken
}

// billsOtherwise says whether the namespaces in the tree of root bear other billing labels than in old.
func (s *Snapshot) billsOtherwise(old *Snapshot, root string) bool {
	return !slices.Equal(s.listBillingLabels(root), old.listBillingLabels(root))
}
