package copies_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/copies"
)

type object = map[string]any

func parse(t *testing.T, text string) object {
	t.Helper()
	result := object{}
	if err := yaml.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// configured returns rules that exclude the keys of the default configuration, and the objects that the tests call never.
func configured() copies.Rules {
	excluded := func(key string) bool {
		return strings.Contains(key, "kubernetes.io/") || strings.HasPrefix(key, "argocd.argoproj.io/")
	}
	return copies.Rules{
		ExcludedLabel: excluded, ExcludedAnnotation: excluded,
		NeverPropagate: func(kind schema.GroupKind, name, secretType string, labels map[string]string) bool {
			return kind == secret && (name == "never" || secretType == "example.com/never" || labels["never"] == "true")
		},
	}
}

func slotOf(t *testing.T, o object) copies.Slot {
	t.Helper()
	version, _ := o["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	meta, _ := o["metadata"].(object)
	kind, _ := o["kind"].(string)
	name, _ := meta["name"].(string)
	return copies.Slot{Kind: schema.GroupKind{Group: group, Kind: kind}, Namespace: "acme", Name: name}
}

func rendered(t *testing.T, rules copies.Rules, text string) (*copies.Body, copies.Slot) {
	t.Helper()
	o := parse(t, text)
	slot := slotOf(t, o)
	body, err := copies.Render(slot, o, rules)
	if err != nil {
		t.Fatal(err)
	}
	return body, slot
}

// copyOf returns the copy in namespace a of an object in namespace acme, as the operator sends it.
func copyOf(t *testing.T, rules copies.Rules, text string, over *copies.Copy) object {
	t.Helper()
	body, slot := rendered(t, rules, text)
	hash := copies.Hash{Mode: update, Place: "p", Content: "c"}
	data, err := body.JSON(slot.At("a"), "acme", hash, over)
	if err != nil {
		t.Fatal(err)
	}
	result := object{}
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return result
}

// meta is the metadata that the copy has in most cases of TestRender.
const meta = `metadata: {name: s, namespace: a, labels: {tenancy.warren.dev/inherited-from: acme}, annotations: ` +
	`{tenancy.warren.dev/source-hash: "update:p:c"}}`

func TestRender(t *testing.T) {
	cases := map[string]struct{ reason, source, want string }{
		"Secret": {
			"everything outside metadata but status goes along", `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: acme}
type: Opaque
immutable: true
data: {k: dg==}
status: {x: 1}`, `
apiVersion: v1
kind: Secret
type: Opaque
immutable: true
data: {k: dg==}
` + meta,
		},
		"Empty": {"an object without content", "{apiVersion: v1, kind: ConfigMap, metadata: {name: s}}",
			"apiVersion: v1\nkind: ConfigMap\n" + meta},
		"Metadata": {
			"what binds the source to its owner, makes it a source, or is excluded stays behind; marks of access objects go along", `
apiVersion: v1
kind: ConfigMap
metadata:
  name: s
  generateName: s-
  uid: u
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]
  managedFields: [{manager: kubectl, operation: Update}]
  labels: {app: x, argocd.argoproj.io/instance: i, tenancy.warren.dev/propagate: update, tenancy.warren.dev/access: users,
    tenancy.warren.dev/tenant: acme, x.tree.tenancy.warren.dev/depth: "1"}
  annotations: {note: one, kubectl.kubernetes.io/last-applied-configuration: "{}",
    tenancy.warren.dev/select: a=b, tenancy.warren.dev/propagate-generated: update}
data: {k: v}`, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: s
  namespace: a
  labels: {app: x, tenancy.warren.dev/access: users, tenancy.warren.dev/tenant: acme, tenancy.warren.dev/inherited-from: acme}
  annotations: {note: one, tenancy.warren.dev/source-hash: "update:p:c"}
data: {k: v}`,
		},
		"LastApplied": {
			"what kubectl notes stays behind though nobody excludes it, or a prune would take the copy", `
apiVersion: v1
kind: ConfigMap
metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}`, "apiVersion: v1\nkind: ConfigMap\n" + meta,
		},
		"Service": {
			"addresses that the API server gave are the source's alone", `
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 31000, type: NodePort,
  ports: [{port: 80, nodePort: 30000}, {port: 81}]}`, `
apiVersion: v1
kind: Service
spec: {type: NodePort, ports: [{port: 80}, {port: 81}]}
` + meta,
		},
		"HeadlessService": {
			"None is no address but a kind of Service", `
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {clusterIP: None, clusterIPs: [None]}`, `
apiVersion: v1
kind: Service
spec: {clusterIP: None, clusterIPs: [None]}
` + meta,
		},
		"ServiceAccount": {
			"tokens stay, pull secrets go along", `
apiVersion: v1
kind: ServiceAccount
metadata: {name: s}
secrets: [{name: token}]
imagePullSecrets: [{name: pull}]`, `
apiVersion: v1
kind: ServiceAccount
imagePullSecrets: [{name: pull}]
` + meta,
		},
		"RoleBinding": {
			"a service account without a namespace is the source's, not a stranger's of that name", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: x}, {kind: ServiceAccount, name: y, namespace: ""},
  {kind: ServiceAccount, name: z, namespace: zeta},
  {kind: User, name: alice}]`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: x, namespace: acme}, {kind: ServiceAccount, name: y, namespace: acme},
  {kind: ServiceAccount, name: z, namespace: zeta},
  {kind: User, name: alice}]
` + meta,
		},
		"OtherRoleBinding": {
			"only RBAC's", `
apiVersion: example.com/v1
kind: RoleBinding
metadata: {name: s}
subjects: [{kind: ServiceAccount, name: x}]`, `
apiVersion: example.com/v1
kind: RoleBinding
subjects: [{kind: ServiceAccount, name: x}]
` + meta,
		},
		"PersistentVolumeClaim": {
			"a claim is not bound to the source's volume", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: s, annotations: {pv.kubernetes.io/bind-completed: "yes", pv.kubernetes.io/bound-by-controller: "yes"}}
spec: {volumeName: v, storageClassName: fast}`, `
apiVersion: v1
kind: PersistentVolumeClaim
spec: {storageClassName: fast}
` + meta,
		},
		"Job": {
			"a generated selector would catch the source's pods", `
apiVersion: batch/v1
kind: Job
metadata: {name: s, labels: {controller-uid: u, job-name: s, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: s}}
spec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata:
  {labels: {app: x, controller-uid: u, job-name: s, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: s}}}}`, `
apiVersion: batch/v1
kind: Job
spec: {template: {metadata: {labels: {app: x}}}}
` + meta,
		},
		"JobWithItsOwnSelector": {
			"one that a person wrote stays", `
apiVersion: batch/v1
kind: Job
metadata: {name: s}
spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}}}`, `
apiVersion: batch/v1
kind: Job
spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}}}
` + meta,
		},
		"Malformed": {
			"what a kind of that name elsewhere may look like is copied as it is", `
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [x]}`, `
apiVersion: v1
kind: Service
spec: {ports: [x]}
` + meta,
		},
		"Bare": {"nothing to drop is no problem", "{apiVersion: batch/v1, kind: Job, metadata: {name: s}}",
			"apiVersion: batch/v1\nkind: Job\n" + meta},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rules := copies.Rules{}
			if name == "Metadata" {
				rules = configured()
			}
			if diff := cmp.Diff(parse(t, tc.want), copyOf(t, rules, tc.source, nil)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
