package whole_test

import (
	"math"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/whole/api"
	"github.com/warren-tenancy/warren/test/whole/oracle"
)

// tester stands for the operator. The model does not look at the rights of parts of Kubernetes.
const tester = "system:tester"

// write is an object that somebody makes, or changes if it is there.
type write struct{ user, child, object string }

const (
	tenant = `{apiVersion: tenancy.warren.dev/v1alpha1, kind: LNamespace, metadata: {name: t1},
		spec: {users: [{kind: User, name: alice}], limits: {hard: {pods: "2"}}}}`
	root  = `{apiVersion: v1, kind: Namespace, metadata: {name: t1}}`
	below = `{apiVersion: v1, kind: Namespace, metadata: {name: s1, labels: {tenancy.warren.dev/parent: t1}}}`
)

func share(namespace, pods string) string {
	return `{apiVersion: v1, kind: ResourceQuota, metadata: {name: hrq.tenancy.warren.dev, namespace: ` + namespace +
		`}, spec: {hard: {pods: "` + pods + `"}}}`
}

func binding(user string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: t1, labels:
		{tenancy.warren.dev/access: users, tenancy.warren.dev/tenant: t1}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
		name: view}, subjects: [{kind: User, name: ` + user + `}]}`
}

func TestOraclesFind(t *testing.T) {
	made := []write{{api.Admin, "", tenant}, {api.Admin, "", root}, {api.Admin, "", below}}
	status := `{apiVersion: tenancy.warren.dev/v1alpha1, kind: LNamespace, metadata: {name: t1},
		status: {observedGeneration: 7, subNamespaces: 0}}`
	configMap := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {a: b}}`
	changed := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {a: c}}`
	for name, test := range map[string]struct {
		writes []write
		finds  string // "": nothing
	}{
		"a change of what others made": {[]write{{api.Admin, "", configMap}, {tester, "", changed}}, oracle.Others},
		"a change of what it made":     {[]write{{tester, "", configMap}, {tester, "", changed}}, ""},
		"a binding of a listed user":   {append(slices.Clone(made), write{tester, "", binding("alice")}), ""},
		"a binding of another user":    {append(slices.Clone(made), write{tester, "", binding("eve")}), oracle.People},
		"shares that are the limit":    {append(slices.Clone(made), write{tester, "", share("t1", "2")}), ""},
		"shares above the limit": {append(slices.Clone(made), write{tester, "", share("t1", "2")}, write{tester, "", share("s1", "1")}),
			oracle.Shares},
		"a status of a past generation": {append(slices.Clone(made), write{tester, "status", status}), oracle.Generation},
	} {
		t.Run(name, func(t *testing.T) {
			server := api.NewServer(settings(t).Objects)
			watcher := oracle.NewWatcher(server, tester, func() int64 { return math.MaxInt64 })
			for _, w := range test.writes {
				apply(t, server, w)
			}
			found := append(watcher.Found, oracle.CheckPeople(server)...)
			if test.finds == oracle.Generation {
				found = append(found, oracle.CheckGenerations(server)...)
			}
			if test.finds == "" && len(found) > 0 || test.finds != "" && (len(found) == 0 || found[0].Oracle != test.finds) {
				t.Errorf("found %v, want %q", found, test.finds)
			}
		})
	}
}

func apply(t *testing.T, server *api.Server, w write) {
	t.Helper()
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(w.object))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	for _, k := range server.Kinds() {
		if k.GroupVersionKind != u.GroupVersionKind() {
			continue
		}
		old, refusal := k.Find(u.GetNamespace(), u.GetName()), (*api.Refusal)(nil)
		if old == nil {
			_, refusal = server.Create(w.user, u)
		} else {
			u.SetResourceVersion(old.GetResourceVersion())
			_, refusal = server.Update(w.user, old, w.child, u)
		}
		if refusal != nil {
			t.Fatal(refusal)
		}
	}
}
