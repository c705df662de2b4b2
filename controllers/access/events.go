package access

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/access"
	"github.com/warren-tenancy/warren/internal/text"
)

// eventBytes is what the API server takes as an Event's message.
const eventBytes = 1024

// tellChanges sends one Event per list that has changed. settled says that the lists were in force before this pass, so that
// whatever it wrote had drifted.
func (r *Reconciler) tellChanges(tenant *v1alpha1.LNamespace, settled bool, changes []change) {
	first, last := map[access.Key]access.Object{}, map[access.Key]access.Object{}
	var order []access.Key
	for _, c := range changes {
		if _, ok := first[c.key]; !ok {
			first[c.key], order = c.before, append(order, c.key)
		}
		last[c.key] = c.after
	}
	for _, key := range order {
		before, after := first[key], last[key]
		rebound := before != nil && after != nil && access.MustRecreate(before, after)
		switch list := access.ListOf(key, tenant.Name); {
		case settled && !rebound:
			r.event(tenant, corev1.EventTypeNormal, v1alpha1.ReasonDriftRepaired, "put back "+key.String())
		case list == "":
			continue
		default:
			r.tellList(tenant, v1alpha1.ReasonAccessRevoked, fmt.Sprintf("%s: removed ", list), ownGroupAside(tenant.Name, access.Minus(before, after)))
			r.tellList(tenant, v1alpha1.ReasonAccessGranted, fmt.Sprintf("%s: added ", list), ownGroupAside(tenant.Name, access.Minus(after, before)))
			if rebound {
				r.event(tenant, corev1.EventTypeNormal, v1alpha1.ReasonAccessGranted, fmt.Sprintf("%s: bound anew, to another ClusterRole", list))
			}
		}
	}
}

// ownGroupAside leaves out the tenant's own group of sudoers, which is bound beside the managers and listed nowhere.
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

// tellList names as many subjects as an Event can hold.
func (r *Reconciler) tellList(tenant *v1alpha1.LNamespace, reason v1alpha1.Reason, text string, names []string) {
	if len(names) == 0 {
		return
	}
	const room = eventBytes - 40 // for the count of those left out
	var b strings.Builder
	b.WriteString(text)
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
	r.event(tenant, corev1.EventTypeNormal, reason, b.String())
}

// tellFindings warns of what the condition didn't say before.
func (r *Reconciler) tellFindings(tenant *v1alpha1.LNamespace, before *metav1.Condition, found []finding) {
	for _, f := range found {
		if f.event != "" && (before == nil || !strings.Contains(before.Message, f.message)) {
			r.event(tenant, corev1.EventTypeWarning, f.event, f.message)
		}
	}
}

// tellBindings tells whoever looks at the binding, a cluster admin, what the tenant isn't told: once for the same bindings.
func (r *Reconciler) tellBindings(tenant *v1alpha1.LNamespace, seen *facts, before *metav1.Condition) {
	elsewhere := fmt.Sprint(seen.group.elsewhere)
	told, known := r.told.Swap(tenant.Name, elsewhere)
	if told == elsewhere || len(seen.group.elsewhere) == 0 || !known && before != nil && before.Reason == string(v1alpha1.ReasonGroupInUse) {
		return
	}
	group, effect := v1alpha1.SudoersGroup(tenant.Name), "sudo is withheld there"
	if !seen.groupInUse() {
		effect = "in mode Constrained that gives them nothing"
		r.event(tenant, corev1.EventTypeWarning, v1alpha1.ReasonGroupInUse, fmt.Sprintf("group %s is bound elsewhere; %s", group, effect))
	}
	for _, h := range seen.group.elsewhere {
		object := &corev1.ObjectReference{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: h.key.Kind, Namespace: h.key.Namespace, Name: h.key.Name, UID: h.uid,
		}
		r.Events.Eventf(object, corev1.EventTypeWarning, string(v1alpha1.ReasonGroupInUse),
			"binds group %s, which sudoers of LNamespace %s become; %s", group, tenant.Name, effect)
	}
}

func (r *Reconciler) event(tenant *v1alpha1.LNamespace, kind string, reason v1alpha1.Reason, message string) {
	r.Events.Event(tenant, kind, string(reason), text.Cut(message, eventBytes))
}
