package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

var secrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// object returns the metadata of an object. keys are alternately a key and its value: of an annotation if the key
// begins with @, else of a label.
func object(kind schema.GroupVersionKind, namespace, name string, keys ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{},
		Annotations: map[string]string{}}}
	o.SetGroupVersionKind(kind)
	o.UID = types.UID(kind.Kind + namespace + name)
	for i := 0; i < len(keys); i += 2 {
		if annotation, ok := strings.CutPrefix(keys[i], "@"); ok {
			o.Annotations[annotation] = keys[i+1]
		} else {
			o.Labels[keys[i]] = keys[i+1]
		}
	}
	return o
}

func namespace(name string, keys ...string) *metav1.PartialObjectMetadata {
	return object(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", name, keys...)
}

// site is a cluster in memory, on which plans can be carried out.
type site struct {
	Cluster
	estate func(Cluster) *Estate
}

func newSite(mode copies.KindMode, namespaces []*metav1.PartialObjectMetadata, objects ...*metav1.PartialObjectMetadata) *site {
	s := &site{Cluster: Cluster{
		Namespaces: map[string]*metav1.PartialObjectMetadata{}, Subs: map[string]*v1alpha1.SubNamespace{},
		Hierarchies: map[string]*v1alpha1.HierarchyConfiguration{},
		Rules:       forest.Rules{ProtectedName: func(name string) bool { return strings.HasPrefix(name, "kube-") }},
		Kinds:       []Kind{{GroupVersionKind: secrets, Resource: "secrets", Mode: mode, Objects: objects}},
	}}
	for _, n := range namespaces {
		s.Namespaces[n.Name] = n
	}
	deployment := object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "peer", "manager")
	s.Peer = Engine{
		Deployments: []Deployment{{PartialObjectMetadata: deployment, Wanted: 2}},
		Webhooks: []Webhooks{{PartialObjectMetadata: object(schema.GroupVersionKind{Kind: "ValidatingWebhookConfiguration"}, "", "peer"),
			Policies: []string{"Fail", "Ignore", "Fail"}, AtRest: []string{"Ignore", "Ignore", "Fail"},
			Guards: []string{"namespaces.peer", "", ""}}},
		RecordAt: Object{"v1", "ConfigMap", "warren-system", "record"},
	}
	return s
}

// do changes the site as the API server would by this step and, after the last step, as Warren would.
func (s *site) do(t *testing.T, step Step) {
	t.Helper()
	data, err := json.Marshal(step.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Metadata   struct{ Labels, Annotations map[string]*string }
		Spec       json.RawMessage
		BinaryData map[string][]byte
	}
	if s.doOfTenants(t, step) {
		return
	}
	if step.Verb != Delete && step.Object.Kind != "ValidatingWebhookConfiguration" {
		if err := json.Unmarshal(data, &body); err != nil {
			t.Fatalf("%s: %v", step.Object, err)
		}
	}
	switch at := step.Object; at.Kind {
	case "ConfigMap":
		if s.Peer.Record = nil; step.Verb != Delete {
			s.Peer.Record, err = unpackRecord(body.BinaryData[recordKey])
		}
	case "Deployment":
		var spec struct{ Replicas int64 }
		err = json.Unmarshal(body.Spec, &spec)
		s.Peer.Deployments[0].Wanted = spec.Replicas
	case "ValidatingWebhookConfiguration":
		for _, change := range step.Body.([]any)[1:] {
			var i int
			_, err = fmt.Sscanf(change.(map[string]any)["path"].(string), "/webhooks/%d/", &i)
			s.Peer.Webhooks[0].Policies[i] = change.(map[string]any)["value"].(string)
		}
	case "SubNamespace":
		if delete(s.Subs, at.Namespace+"/"+at.Name); step.Verb != Delete {
			sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name,
				Labels: map[string]string{v1alpha1.LabelCreatedBy: madeHere}}}
			err = json.Unmarshal(body.Spec, &sub.Spec)
			s.Subs[at.Namespace+"/"+at.Name] = sub
		}
	case "HierarchyConfiguration":
		hc := s.Hierarchies[at.Namespace]
		if delete(s.Hierarchies, at.Namespace); step.Verb != Delete {
			if hc == nil {
				hc = &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name,
					Labels: map[string]string{v1alpha1.LabelCreatedBy: madeHere}}}
			}
			err = json.Unmarshal(body.Spec, &hc.Spec)
			s.Hierarchies[at.Namespace] = hc
		}
	case "HierarchicalResourceQuota":
		if delete(s.Quotas.ours, at); step.Verb != Delete {
			hrq := &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, Generation: 1,
				Labels: map[string]string{v1alpha1.LabelCreatedBy: madeHere}}}
			err = json.Unmarshal(body.Spec, &hrq.Spec)
			s.Quotas.ours[at] = hrq
		}
	case "ResourceQuota":
		s.Quotas.old[at.Namespace] = slices.DeleteFunc(s.Quotas.old[at.Namespace],
			func(q *corev1.ResourceQuota) bool { return q.Name == at.Name })
	default:
		s.relabel(t, at, body.Metadata.Labels, body.Metadata.Annotations)
	}
	if err != nil {
		t.Fatalf("%s: %v", step.Object, err)
	}
}

func (s *site) relabel(t *testing.T, at Object, labels, annotations map[string]*string) {
	t.Helper()
	found := s.Namespaces[at.Name]
	if at.Kind != "Namespace" {
		i := slices.IndexFunc(s.Kinds[0].Objects, func(o *metav1.PartialObjectMetadata) bool {
			return o.Namespace == at.Namespace &&
				o.Name == at.Name
		})
		found = s.Kinds[0].Objects[i]
	}
	for now, changes := range map[*map[string]string]map[string]*string{&found.Labels: labels, &found.Annotations: annotations} {
		for key, value := range changes {
			if delete(*now, key); value != nil {
				(*now)[key] = *value
			}
		}
	}
}

func (s *site) plan() Plan { return NewPlan(s.estate(s.Cluster), s.Cluster) }

// apply carries out the steps up to phase until: writes of them at most, each from a new plan.
func (s *site) apply(t *testing.T, until Phase, plan func() Plan, writes int) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("the order of steps is drawn by seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range writes {
		steps := (&executor{until: until}).nextWave(plan().Steps)
		if len(steps) == 0 {
			return
		}
		s.do(t, steps[random.IntN(len(steps))])
	}
}

func (s *site) keys() map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, o := range append(slices.Clone(s.Kinds[0].Objects), slices.Collect(func(yield func(*metav1.PartialObjectMetadata) bool) {
		for _, n := range s.Namespaces {
			if !yield(n) {
				return
			}
		}
	})...) {
		keys := map[string]string{}
		maps.Copy(keys, o.Labels)
		for key, value := range o.Annotations {
			keys["@"+key] = value
		}
		found[objectFromMetadata(o).String()] = keys
	}
	return found
}

func hncObject(kind, namespace, name string, spec map[string]any) unstructured.Unstructured {
	u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "hnc.x-k8s.io/v1alpha2", "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// hncSite has the namespaces org, below it team (an anchor), and below that svc (placed). org has a Secret for each of
// HNC's ways to copy.
func hncSite(mode copies.KindMode, hncMode string) *site {
	inherited := "hnc.x-k8s.io/inherited-from"
	s := newSite(mode, []*metav1.PartialObjectMetadata{
		namespace("org"), namespace("team", "@hnc.x-k8s.io/subnamespace-of", "org"), namespace("svc"), namespace("plain"),
	},
		object(secrets, "org", "every", "@propagate.hnc.x-k8s.io/all", "true"), object(secrets, "team", "every", inherited, "org"),
		object(secrets, "svc", "every", inherited, "org"),
		object(secrets, "org", "some", "@propagate.hnc.x-k8s.io/treeSelect", "team, !svc"), object(secrets, "team", "some", inherited, "org"),
		object(secrets, "org", "none", "@propagate.hnc.x-k8s.io/none", "true"), object(secrets, "plain", "stray", inherited, "org"),
		object(secrets, "svc", "own"),
	)
	found := HNC{
		Anchors: []unstructured.Unstructured{hncObject("SubnamespaceAnchor", "org", "team",
			map[string]any{"labels": []any{map[string]any{"key": "app", "value": "web"}}})},
		Hierarchies: []unstructured.Unstructured{
			hncObject("HierarchyConfiguration", "org", "hierarchy",
				map[string]any{"allowCascadingDeletion": true, "labels": []any{map[string]any{"key": "cost", "value": "7"}}}),
			hncObject("HierarchyConfiguration", "svc", "hierarchy", map[string]any{"parent": "team"}),
		},
		Configurations: []unstructured.Unstructured{hncObject("HNCConfiguration", "", "config",
			map[string]any{"resources": []any{map[string]any{"resource": "secrets", "mode": hncMode}}})},
	}
	found.settings, _ = settingsOfHNC(nil)
	every := func(string) bool { return true }
	s.estate = func(c Cluster) *Estate { return EstateOfHNC(found, c.Namespaces, c.Kinds, AllowedKeys{every, every}) }
	return s
}

// follow has Warren update the copies that it has taken over, as it does once their sources ask for that.
func (s *site) follow() {
	modes := map[string]string{}
	for _, o := range s.Kinds[0].Objects {
		modes[o.Namespace+"/"+o.Name] = o.Labels[v1alpha1.LabelPropagate]
	}
	for _, o := range s.Kinds[0].Objects {
		if from := o.Labels[v1alpha1.LabelInheritedFrom]; from != "" && modes[from+"/"+o.Name] != v1alpha1.ModeCreate {
			delete(o.Labels, "hnc.x-k8s.io/inherited-from")
			delete(o.Annotations, accurateFrom)
			o.Annotations[v1alpha1.AnnotationSourceHash] = strings.Replace(o.Annotations[v1alpha1.AnnotationSourceHash], "create:", "update:", 1)
		}
	}
}

func TestPlanOfHNC(t *testing.T) {
	for name, c := range map[string]struct {
		mode        copies.KindMode
		hnc         string
		every, none string
	}{
		"all":    {copies.All, hncPropagate, "", "none"},
		"opt in": {copies.OptIn, hncAllowPropagate, "update", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := hncSite(c.mode, c.hnc)
			s.apply(t, Hierarchy, s.plan, 1000)
			keys := s.keys()
			for _, copied := range []string{"Secret team/every", "Secret svc/every", "Secret team/some"} {
				if !strings.HasPrefix(keys[copied]["@"+v1alpha1.AnnotationSourceHash], "create:") ||
					keys[copied][v1alpha1.LabelInheritedFrom] != "org" {
					t.Errorf("%s isn't taken over: %v", copied, keys[copied])
				}
			}
			want := map[string]string{v1alpha1.LabelPropagate: "create",
				"@" + v1alpha1.AnnotationSelect: "team.tree.tenancy.warren.dev/depth,!svc.tree.tenancy.warren.dev/depth"}
			if diff := cmp.Diff(want["@"+v1alpha1.AnnotationSelect], keys["Secret org/some"]["@"+v1alpha1.AnnotationSelect]); diff != "" {
				t.Error(diff)
			}
			if keys["Secret org/some"][v1alpha1.LabelPropagate] != "create" || keys["Secret org/every"][v1alpha1.LabelPropagate] != "create" {
				t.Errorf("sources aren't in mode create: %v", keys)
			}
			if s.Subs["org/team"] == nil || s.Subs["org/team"].Spec.Labels["app"] != "web" || !s.Hierarchies["org"].Spec.AllowCascadingDeletion {
				t.Errorf("SubNamespaces %v, HierarchyConfigurations %v", s.Subs, s.Hierarchies)
			}
			if keys["Namespace svc"][v1alpha1.LabelParent] != "team" || keys["Namespace svc"][v1alpha1.LabelBound] != "" ||
				keys["Namespace team"][v1alpha1.LabelBound] != "true" {
				t.Errorf("namespaces: %v", keys)
			}
			s.apply(t, Finish, s.plan, 1000)
			s.follow()
			if plan := s.plan(); len(plan.Steps) > 0 {
				t.Errorf("something is left: %+v", plan.Steps)
			}
			keys = s.keys()
			if keys["Secret org/every"][v1alpha1.LabelPropagate] != c.every || keys["Secret org/none"][v1alpha1.LabelPropagate] != c.none ||
				s.Peer.Deployments[0].Wanted != 0 {
				t.Errorf("in the end: %v", keys)
			}
		})
	}
}

// However many writes were done before, an undo leaves the cluster as it was, even if the undo is interrupted and
// begins again.
func TestUndo(t *testing.T) {
	for writes := range 40 {
		s := hncSite(copies.All, hncPropagate)
		before := s.keys()
		s.apply(t, Hierarchy, s.plan, writes)
		undo := func() Plan {
			plan, err := NewUndo(s.estate(s.Cluster), s.Cluster)
			if err != nil {
				return Plan{}
			}
			return plan
		}
		s.apply(t, "", undo, 1000)
		if diff := cmp.Diff(before, s.keys()); diff != "" {
			t.Errorf("after %d writes (-before +after):\n%s", writes, diff)
		}
		if s.Peer.Deployments[0].Wanted != 2 || s.Peer.Webhooks[0].Policies[0] != "Fail" || len(s.Subs)+len(s.Hierarchies) > 0 {
			t.Errorf("after %d writes: %+v, %v, %v", writes, s.Peer, s.Subs, s.Hierarchies)
		}
	}
	s := hncSite(copies.All, hncPropagate)
	s.apply(t, "", s.plan, 1000)
	if _, err := NewUndo(s.estate(s.Cluster), s.Cluster); err == nil || !strings.Contains(err.Error(), "the last step has been taken") {
		t.Errorf("undone after the last step: %v", err)
	}
}

func TestWhatCannotJoin(t *testing.T) {
	s := hncSite(copies.All, hncPropagate)
	s.Namespaces["svc"].Labels[v1alpha1.LabelParent] = "elsewhere"
	s.Namespaces["plain"].Labels["x"] = "y"
	var gaps []string
	for _, gap := range s.plan().Gaps {
		gaps = append(gaps, gap.What)
	}
	want := []string{
		"mode Propagate of roles.rbac.authorization.k8s.io", "mode Propagate of rolebindings.rbac.authorization.k8s.io",
		"Namespace svc", "copy Secret plain/stray", "copy Secret svc/every",
	}
	if diff := cmp.Diff(want, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}
