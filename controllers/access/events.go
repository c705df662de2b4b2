package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/text"
)

// announcer sends the Events about access.
type announcer struct {
	events record.EventRecorder
	told   sync.Map // tenant → the foreign bindings of its group that Events have named
}

// dropTenant drops which foreign bindings of the tenant's group Events have named.
func (a *announcer) dropTenant(tenant string) { a.told.Delete(tenant) }

// announceChanges sends Events about the changes of a pass. settled reports that the lists were already in force before
// this pass: then each change repaired an object that another client had changed, and the Events name these objects.
// Otherwise they name the subjects whose rights by each list have changed. actual holds the objects after the pass.
func (a *announcer) announceChanges(tenant *v1alpha1.LNamespace, settled bool, changes []change, actual grants.Actual) {
	earlier := maps.Clone(actual)
	// Backward, so that the first change of an object restores what was there before the pass.
	for _, c := range slices.Backward(changes) {
		earlier.Put(c.key, c.before)
	}
	told := map[grants.Key]bool{}
	for _, c := range changes {
		before, after := earlier[c.key], actual[c.key]
		rebound := before != nil && after != nil && grants.MustRecreate(before, after)
		switch {
		// One Event for each object, however often the pass wrote it.
		case told[c.key]:
		case settled && !rebound:
			a.sendEvent(tenant, corev1.EventTypeNormal, v1alpha1.ReasonDriftRepaired,
				"another client changed "+c.key.String()+", and the operator restored it: change the LNamespace instead")
		case rebound:
			for _, list := range grants.ListsOf(c.key, tenant.Name) {
				a.sendEvent(tenant, corev1.EventTypeNormal, v1alpha1.ReasonAccessGranted,
					fmt.Sprintf("%s: the binding of this list was replaced, because it must refer to another ClusterRole", list))
			}
		}
		told[c.key] = true
	}
	if settled {
		return
	}
	for _, list := range grants.Lists() {
		before, after := earlier.Holders(list, tenant.Name), actual.Holders(list, tenant.Name)
		a.announceList(tenant, v1alpha1.ReasonAccessRevoked, fmt.Sprintf("%s: removed ", list),
			ownGroupAside(tenant.Name, grants.Minus(before, after)))
		a.announceList(tenant, v1alpha1.ReasonAccessGranted, fmt.Sprintf("%s: added ", list),
			ownGroupAside(tenant.Name, grants.Minus(after, before)))
	}
}

// ownGroupAside returns names without the tenant's own group of sudoers: the operator binds that group together with
// the managers, but the group is on no list.
func ownGroupAside(tenant string, names []string) []string {
	group := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: v1alpha1.SudoersGroup(tenant)}.String()
	var listed []string
	for _, name := range names {
		if name != group {
			listed = append(listed, name)
		}
	}
	return listed
}

// announceList sends an Event that names as many subjects as its message can hold.
func (a *announcer) announceList(tenant *v1alpha1.LNamespace, reason v1alpha1.Reason, intro string, names []string) {
	if len(names) == 0 {
		return
	}
	const room = text.EventBytes - 40 // 40 bytes are for the count of the names left out
	var b strings.Builder
	b.WriteString(intro)
	for i, name := range names {
		if i > 0 {
			if b.Len()+len(name) > room {
				fmt.Fprintf(&b, " and %d more", len(names)-i)
				break
			}
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	a.sendEvent(tenant, corev1.EventTypeNormal, reason, b.String())
}

// announceFindings sends a warning for each finding whose field event is set, unless the condition already mentioned
// the finding before this pass. before is that condition, or nil if there was none.
func (a *announcer) announceFindings(tenant *v1alpha1.LNamespace, before *metav1.Condition, found []finding) {
	for _, f := range found {
		if f.event != "" && (before == nil || !strings.Contains(before.Message, f.message)) {
			a.sendEvent(tenant, corev1.EventTypeWarning, f.event, f.message)
		}
	}
}

// announceBindings sends Events about foreign bindings of the tenant's group, and sends none again while the bindings
// stay the same. Each binding gets an Event, for a cluster admin who looks at it. The LNamespace gets one, for the
// tenant, unless announceFindings already reports the bindings.
func (a *announcer) announceBindings(tenant *v1alpha1.LNamespace, seen *facts, before *metav1.Condition) {
	elsewhere := seen.group.inTheWay
	now := fmt.Sprint(elsewhere)
	told, known := a.told.Swap(tenant.Name, now)
	// After a restart nothing is known to be told, but the condition shows that an Event was sent.
	if told == now || len(elsewhere) == 0 || !known && before != nil && before.Reason == string(v1alpha1.ReasonGroupInUse) {
		return
	}
	effect := "the operator grants no sudo there while this binding exists"
	if !seen.groupInUse() {
		effect = "such a binding gives sudoers no rights in mode Constrained, but stops sudo in mode Legacy: a cluster admin should delete it"
		a.sendEvent(tenant, corev1.EventTypeWarning, v1alpha1.ReasonGroupInUse,
			fmt.Sprintf("%s is bound outside of this tenant; %s", sudoersOf(tenant), effect))
	}
	for _, h := range elsewhere {
		object := &corev1.ObjectReference{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: h.key.Kind, Namespace: h.key.Namespace, Name: h.key.Name, UID: h.uid,
		}
		a.events.Eventf(object, corev1.EventTypeWarning, string(v1alpha1.ReasonGroupInUse),
			"this binding names %s, which sudoers of LNamespace %s impersonate; %s", sudoersOf(tenant), tenant.Name, effect)
	}
}

// sudoersOf names, in a message, whom a tenant's sudoers impersonate.
func sudoersOf(tenant *v1alpha1.LNamespace) string {
	return fmt.Sprintf("group %s or user %s", v1alpha1.SudoersGroup(tenant.Name), grants.SudoUser(tenant.Name))
}

func (a *announcer) sendEvent(tenant *v1alpha1.LNamespace, kind string, reason v1alpha1.Reason, message string) {
	a.events.Event(tenant, kind, string(reason), text.Cut(message, text.EventBytes))
}
