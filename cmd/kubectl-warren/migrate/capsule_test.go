package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
)

// doOfTenants carries out a step that only a migration from Capsule has, and reports whether step was one.
func (s *site) doOfTenants(t *testing.T, step Step) bool {
	t.Helper()
	data, err := json.Marshal(step.Body)
	if err != nil {
		t.Fatal(err)
	}
	at := step.Object
	switch {
	case at.Kind == "LNamespace":
		if delete(s.LNamespaces, at.Name); step.Verb == Delete {
			delete(s.Namespaces, at.Name) // Warren deletes the root
			return true
		}
		lns := &v1alpha1.LNamespace{}
		err = json.Unmarshal(data, lns)
		lns.Status.Namespace = at.Name
		s.LNamespaces[at.Name] = lns
		if s.Namespaces[at.Name] == nil {
			s.Namespaces[at.Name] = namespace(at.Name, v1alpha1.LabelType, "root")
		}
	case at.Kind == "ClusterRoleBinding":
		var body struct{ Subjects []any }
		err = json.Unmarshal(data, &body)
		s.Peer.Grants[0].Subjects = body.Subjects
	case at.Kind == "RoleBinding" && step.Verb == Delete:
		s.Kinds[0].Objects = slices.DeleteFunc(s.Kinds[0].Objects,
			func(o *metav1.PartialObjectMetadata) bool { return o.Namespace == at.Namespace && o.Name == at.Name })
	case at.Kind == "RoleBinding" && step.Verb == Create:
		made := object(roleBindings, at.Namespace, at.Name)
		err = json.Unmarshal(data, made)
		s.Kinds[0].Objects = append(s.Kinds[0].Objects, made)
	case strings.Contains(string(data), `"ownerReferences"`):
		s.owned(at).OwnerReferences = nil
	default:
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return true
}

func (s *site) owned(at Object) *metav1.PartialObjectMetadata {
	if at.Kind == "Namespace" {
		return s.Namespaces[at.Name]
	}
	i := slices.IndexFunc(s.Kinds[0].Objects, func(o *metav1.PartialObjectMetadata) bool {
		return o.Namespace == at.Namespace &&
			o.Name == at.Name
	})
	return s.Kinds[0].Objects[i]
}

func ownedBy(o *metav1.PartialObjectMetadata, tenant string) *metav1.PartialObjectMetadata {
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "capsule.clastix.io/v1beta2", Kind: "Tenant", Name: tenant,
		UID: types.UID("uid of " + tenant)}}
	o.Labels[capsuleTenant] = tenant
	return o
}

// tenantObject returns a Tenant of Capsule's with this spec.
func tenantObject(name string, spec map[string]any) unstructured.Unstructured {
	u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "capsule.clastix.io/v1beta2", "kind": "Tenant", "spec": spec}}
	u.SetName(name)
	u.SetUID(types.UID("uid of " + name))
	return u
}

func owner(kind, name string, roles ...any) map[string]any {
	return map[string]any{"kind": kind, "name": name, "clusterRoles": roles}
}

// capsuleSite returns a site with two Tenants of two namespaces each: oil, and gas, whose name one of its namespaces
// has. Each RoleBinding has the name of the role that it binds.
func capsuleSite() *site {
	s := newSite(copies.OptIn, []*metav1.PartialObjectMetadata{
		ownedBy(namespace("oil-dev"), "oil"), ownedBy(namespace("oil-prod"), "oil"), ownedBy(namespace("gas"), "gas"),
		ownedBy(namespace("gas-lab"), "gas"),
		namespace("ci"), namespace("plain"), namespace("stranger", capsuleTenant, "oil"),
	})
	s.LNamespaces, s.Caller = map[string]*v1alpha1.LNamespace{}, "root@example.com"
	crb := object(roleBindings, "", capsuleProvisioner)
	crb.Kind = "ClusterRoleBinding"
	s.Peer.Grants = []Grant{{crb, []any{map[string]any{"kind": "Group", "name": "capsule.clastix.io"}}}}
	s.Kinds[0] = Kind{GroupVersionKind: roleBindings, Resource: "rolebindings", Mode: copies.OptIn}
	gives := map[string]bindingOfCapsule{}
	for name, subject := range map[string][3]string{
		"admin-alice": {"User", "", "alice"}, "capsule-namespace-deleter-alice": {"User", "", "alice"},
		"deploy-ci":    {"ServiceAccount", "ci", "bot"},
		"view-readers": {"Group", "", "readers"}, "admin-own": {"ServiceAccount", "oil-dev", "robot"},
	} {
		role, _, _ := strings.Cut(name, "-")
		if strings.HasPrefix(name, capsuleDeleter) {
			role = capsuleDeleter
		}
		b := bindingOfCapsule{ClusterRoleName: role}
		b.Subjects = append(b.Subjects, bindingSubject(subject))
		gives[name] = b
		for _, in := range []string{"oil-dev", "oil-prod"} {
			s.Kinds[0].Objects = append(s.Kinds[0].Objects, ownedBy(object(roleBindings, in, name, capsuleBinding, "x", "app", "y"), "oil"))
		}
	}
	s.Kinds[0].Objects = append(s.Kinds[0].Objects, ownedBy(object(roleBindings, "gas", "view-readers", capsuleBinding, "x"), "gas"),
		ownedBy(object(roleBindings, "gas-lab", "view-readers", capsuleBinding, "x"), "gas"), object(roleBindings, "plain", "own"))
	readers := []any{map[string]any{"clusterRoleName": "view", "subjects": []any{map[string]any{"kind": "Group", "name": "readers"}}}}
	oil := tenantObject("oil", map[string]any{
		"owners": []any{
			owner("User", "alice", "admin", capsuleDeleter), owner("ServiceAccount", "system:serviceaccount:ci:bot", "deploy"),
			owner("ServiceAccount", "system:serviceaccount:oil-dev:robot", "admin"),
		},
		"additionalRoleBindings": readers, "namespaceOptions": map[string]any{"quota": int64(5)}, "cordoned": false,
		"resourceQuotas": map[string]any{"scope": "Tenant", "items": []any{map[string]any{"hard": map[string]any{"pods": "9"}}}},
		"nodeSelector":   map[string]any{"pool": "oil"},
	})
	gas := tenantObject("gas", map[string]any{"additionalRoleBindings": readers, "namespaceOptions": map[string]any{"quota": int64(1)}})
	s.estate = func(c Cluster) *Estate {
		found := Capsule{Tenants: []unstructured.Unstructured{oil, gas}}
		for _, o := range c.Kinds[0].Objects {
			if o.Labels[v1alpha1.LabelCreatedBy] == madeHere {
				found.Made = append(found.Made, bindingObject(o, gives[o.Name]))
			}
			if o.Labels[capsuleBinding] != "" {
				found.Replicas = append(found.Replicas, bindingObject(o, gives[o.Name]))
			}
		}
		return EstateOfCapsule(found, c, ourRules{configfile.Default(), "warren-system"})
	}
	return s
}

func bindingSubject(of [3]string) (s rbacv1.Subject) {
	s.Kind, s.Namespace, s.Name = of[0], of[1], of[2]
	return s
}

func bindingObject(o *metav1.PartialObjectMetadata, b bindingOfCapsule) unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err)
	}
	var subjects []any
	for _, s := range b.Subjects {
		subjects = append(subjects, map[string]any{"kind": s.Kind, "namespace": s.Namespace, "name": s.Name})
	}
	fields["roleRef"], fields["subjects"] = map[string]any{"kind": "ClusterRole", "name": b.ClusterRoleName}, subjects
	return unstructured.Unstructured{Object: fields}
}

// everything returns what an undo must restore: labels and annotations, ownerReferences, and what else the migration
// wrote.
func (s *site) everything() map[string]any {
	found := map[string]any{}
	for name, keys := range s.keys() {
		found[name] = keys
	}
	for _, o := range append(slices.Collect(maps.Values(s.Namespaces)), s.Kinds[0].Objects...) {
		found["owners of "+objectFromMetadata(o).String()] = len(o.OwnerReferences)
	}
	found["replicas"], found["policies"], found["subjects"] = s.Peer.Deployments[0].Wanted, slices.Clone(s.Peer.Webhooks[0].Policies),
		len(s.Peer.Grants[0].Subjects)
	found["objects"] = fmt.Sprint(len(s.Subs), len(s.LNamespaces))
	return found
}

// followCapsule has Warren update the copies of sources in mode update, which removes labels that the source doesn't
// have.
func (s *site) followCapsule() {
	for _, o := range s.Kinds[0].Objects {
		from := o.Labels[v1alpha1.LabelInheritedFrom]
		if from != "" && s.owned(Object{Kind: "RoleBinding", Namespace: from, Name: o.Name}).
			Labels[v1alpha1.LabelPropagate] == v1alpha1.ModeUpdate {
			o.Labels = map[string]string{v1alpha1.LabelInheritedFrom: from}
			o.Annotations[v1alpha1.AnnotationSourceHash] = strings.Replace(o.Annotations[v1alpha1.AnnotationSourceHash], "create:", "update:", 1)
		}
	}
}

func TestPlanOfCapsule(t *testing.T) {
	s := capsuleSite()
	var gaps []string
	for _, gap := range s.plan().Gaps {
		gaps = append(gaps, gap.What)
	}
	want := []string{
		"deletion of a Tenant", "owner ServiceAccount system:serviceaccount:ci:bot of Tenant oil",
		"resourceQuotas.items[0] of Tenant oil", "owner ServiceAccount system:serviceaccount:oil-dev:robot of Tenant oil",
		"nodeSelector of Tenant oil", "namespaceOptions.quota of Tenant gas",
	}
	if diff := cmp.Diff(want, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	s.apply(t, Hierarchy, s.plan, 1000)
	if diff := cmp.Diff([]v1alpha1.Subject{{Kind: "User", Name: "alice"}}, s.LNamespaces["oil"].Spec.Users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if limits := s.LNamespaces["oil"].Spec.Limits; limits == nil || limits.SubNamespaces == nil || *limits.SubNamespaces != 5 ||
		s.LNamespaces["gas"] != nil {
		t.Errorf("LNamespaces before the last step: %+v", s.LNamespaces)
	}
	keys := s.keys()
	for name, parent := range map[string]string{"oil-dev": "oil", "oil-prod": "oil", "gas-lab": "gas", "gas": "", "stranger": "",
		"plain": ""} {
		bound := ""
		if parent != "" {
			bound = "true"
		}
		if got := keys["Namespace "+name]; got[v1alpha1.LabelParent] != parent || got[v1alpha1.LabelBound] != bound {
			t.Errorf("Namespace %s: %v", name, got)
		}
	}
	if keys["Namespace gas"][v1alpha1.LabelType] != "root" || s.Subs["oil/oil-dev"] == nil || s.Subs["gas/gas-lab"] == nil ||
		len(s.Subs) != 3 {
		t.Errorf("root %v, SubNamespaces %v", keys["Namespace gas"], s.Subs)
	}
	for name, source := range map[string]string{"view-readers": "create", "deploy-ci": "create", "admin-own": "create", "admin-alice": ""} {
		if got := keys["RoleBinding oil/"+name][v1alpha1.LabelPropagate]; got != source {
			t.Errorf("source %s: %q", name, got)
		}
		if copied := keys["RoleBinding oil-dev/"+name][v1alpha1.LabelInheritedFrom] == "oil"; copied != (source != "") {
			t.Errorf("copy %s is taken over: %t", name, copied)
		}
	}
	if s.Peer.Grants[0].Subjects != nil || s.Namespaces["oil-dev"].OwnerReferences == nil {
		t.Errorf("grants %v, owners %v", s.Peer.Grants[0].Subjects, s.Namespaces["oil-dev"].OwnerReferences)
	}
	s.apply(t, Finish, s.plan, 1000)
	s.followCapsule()
	if plan := s.plan(); len(plan.Steps) > 0 {
		t.Errorf("something is left: %+v", plan.Steps)
	}
	for _, o := range append(slices.Collect(maps.Values(s.Namespaces)), s.Kinds[0].Objects...) {
		if replaced := strings.HasSuffix(o.Name, "-alice"); replaced != (len(o.OwnerReferences) > 0) {
			t.Errorf("owners of %s: %v", objectFromMetadata(o), o.OwnerReferences)
		}
	}
	if gas := s.LNamespaces["gas"]; gas == nil || *gas.Spec.Limits.SubNamespaces != 1 ||
		s.Namespaces["gas"].Annotations[v1alpha1.AnnotationAdopt] != v1alpha1.MarkClusterAdmins {
		t.Errorf("LNamespace gas %+v adopts %v", gas, s.Namespaces["gas"])
	}
	if _, err := NewUndo(s.estate(s.Cluster), s.Cluster); err == nil {
		t.Error("undone after the last step")
	}
}

// However many writes were done before, an undo leaves the cluster as it was.
func TestUndoOfCapsule(t *testing.T) {
	for writes := range 40 {
		s := capsuleSite()
		before := s.everything()
		s.apply(t, Hierarchy, s.plan, writes)
		s.apply(t, "", func() Plan { plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster); return plan }, 1000)
		if diff := cmp.Diff(before, s.everything()); diff != "" {
			t.Errorf("after %d writes (-before +after):\n%s", writes, diff)
		}
	}
}

// While nothing answers for Capsule's webhooks, no user may have the rights that only these webhooks restrict.
func TestGrantsAreWithheldBeforeWebhooksLetPass(t *testing.T) {
	t.Run("MIG-C4 --apply writes the record, stops Capsule, then removes the subjects of its grants, "+
		"and only then lets webhooks on Namespaces pass", grantsBeforeWebhooks)
}

func grantsBeforeWebhooks(t *testing.T) {
	t.Helper()
	var order []string
	for _, step := range capsuleSite().plan().Steps {
		if step.Phase == Rest {
			order = append(order, step.Object.Kind)
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "ClusterRoleBinding", "ValidatingWebhookConfiguration"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	x := &executor{reader: &reader{peer: capsulePeer}}
	s := capsuleSite()
	s.Peer.Record, s.Peer.Deployments[0].Running = &Record{}, 1
	for wave, waits := range map[int]bool{0: false, restOthers - 1: false, restOthers: true, restGrants: true, restGrants + 1: true} {
		if awaited := x.reasonToWait([]Step{{Phase: Rest, wave: wave}}, s.estate(s.Cluster), s.Cluster); (awaited != "") != waits {
			t.Errorf("wave %d waits for %q", wave, awaited)
		}
	}
}

func TestTenantsThatCannotMove(t *testing.T) {
	for name, c := range map[string]struct {
		tenant string
		change func(*site)
		want   string
	}{
		"reserved":                   {"gas-system", nil, "reserves its name"},
		"no DNS label":               {"gas.lab", nil, "no DNS label"},
		"name is taken":              {"plain", nil, "exists and does not belong to the Tenant"},
		"protected":                  {"gas", func(s *site) { s.Namespaces["gas"].Labels[v1alpha1.LabelProtected] = "true" }, "is protected"},
		"protectedNamespaces":        {"kube-gas", nil, "take the name out of protectedNamespaces"},
		"an LNamespace has the name": {"plain", func(s *site) { s.LNamespaces["plain"] = lnamespaceBy("plain", s.Caller) }, ""},
		"an earlier caller's LNamespace": {"plain", func(s *site) {
			s.LNamespaces["plain"], s.Peer.Record = lnamespaceBy("plain", "mia"), &Record{Callers: []string{"mia"}}
		}, ""},
		"somebody's LNamespace": {"plain", func(s *site) { s.LNamespaces["plain"] = lnamespaceBy("plain", "eve") },
			"its creator is not known to be you"},
		"a cluster admin's LNamespace, which names no creator": {"plain", func(s *site) {
			s.LNamespaces["plain"] = lnamespaceBy("plain", "")
		}, ""},
	} {
		t.Run("MIG-C5 a Tenant is not moved if its name is reserved, malformed, taken or protected; "+
			"an LNamespace of that name must be the caller's or a cluster admin's: "+name, func(t *testing.T) {
			s := capsuleSite()
			if c.change != nil {
				c.change(s)
			}
			e := EstateOfCapsule(Capsule{Tenants: []unstructured.Unstructured{tenantObject(c.tenant, nil)}}, s.Cluster,
				ourRules{configfile.Default(), "warren-system"})
			_, moves := e.Tenants[c.tenant]
			if c.want == "" && !moves || c.want != "" && (moves || len(e.Gaps) != 2 || !strings.Contains(e.Gaps[1].Instead, c.want)) {
				t.Errorf("Tenant %s moves: %t, gaps %+v", c.tenant, moves, e.Gaps)
			}
		})
	}
}
