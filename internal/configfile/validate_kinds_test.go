package configfile_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestValidateKinds(t *testing.T) {
	refusals{
		"PROP-X3 a file with several kinds that are refused has an error for each, with path and text": {
			reason: "each with its path and the text of propagation.md 2.5",
			body: `propagation:
  kinds:
  - {kind: Pod}
  - {kind: Secret}
  - {kind: Secret, version: v1}
  - {group: rbac.authorization.k8s.io, kind: RoleBinding, mode: Remove}
  - {kind: ConfigMap, mode: all}
  - {group: rbac.authorization.k8s.io, kind: ClusterRole}
`,
			want: []string{
				`propagation.kinds[0].kind: Forbidden: Pod can't be propagated`,
				`propagation.kinds[2]: Duplicate value: "Secret"`,
				`propagation.kinds[3].mode: Invalid value: "Remove": must be OptIn or All`,
				`propagation.kinds[4].mode: Invalid value: "all": must be OptIn, All or Remove`,
				`propagation.kinds[5].kind: Forbidden: "ClusterRole" is cluster-scoped`,
			},
		},
		"KindsWithoutGroups": {
			reason: "a forgotten group is told, and hides no other problem",
			body: "propagation: {kinds: [{kind: RoleBinding, mode: Remove}, {kind: ClusterRole}, {kind: Lease}, {kind: Role}, {group: " +
				"rbac.authorization.k8s.io, kind: Role}]}\n",
			want: []string{
				`propagation.kinds[0].group: Required value: RoleBinding is in group rbac.authorization.k8s.io`,
				`propagation.kinds[0].mode: Invalid value: "Remove": must be OptIn or All`,
				`propagation.kinds[1].kind: Forbidden: "ClusterRole" is cluster-scoped`,
				`propagation.kinds[2].kind: Forbidden: Lease can't be propagated`,
				`propagation.kinds[3].group: Required value: Role is in group rbac.authorization.k8s.io`,
				`propagation.kinds[4]: Duplicate value: "Role.rbac.authorization.k8s.io"`,
			},
		},
		"KindsThatCantBePropagated": {
			reason: "what controllers write for one namespace, and our own kinds",
			body: `propagation:
  kinds: [{kind: Event}, {group: events.k8s.io, kind: Event}, {group: coordination.k8s.io, kind: Lease}, {kind: Endpoints}, {group: ` +
				`discovery.k8s.io, kind: EndpointSlice},
    {group: apps, kind: ControllerRevision}, {kind: Binding}, {group: tenancy.warren.dev, kind: SubNamespace}, {kind: Namespace}, ` +
				`{group: example.com, kind: Pod}]
`,
			want: []string{
				`propagation.kinds[0].kind: Forbidden: Event can't be propagated`,
				`propagation.kinds[1].kind: Forbidden: Event can't be propagated`,
				`propagation.kinds[2].kind: Forbidden: Lease can't be propagated`,
				`propagation.kinds[3].kind: Forbidden: Endpoints can't be propagated`,
				`propagation.kinds[4].kind: Forbidden: EndpointSlice can't be propagated`,
				`propagation.kinds[5].kind: Forbidden: ControllerRevision can't be propagated`,
				`propagation.kinds[6].kind: Forbidden: Binding can't be propagated`,
				`propagation.kinds[7].kind: Forbidden: SubNamespace can't be propagated`,
				`propagation.kinds[8].kind: Forbidden: "Namespace" is cluster-scoped`,
			},
		},
		"HowKindsAreWritten": {
			reason: "a resource, a version with its group, a group with its version, nothing at all",
			body: "propagation: {kinds: [{kind: secrets}, {kind: Secret, version: core/v1}, {kind: Widget, group: example.com/v1}, {group: " +
				"example.com}, {kind: Gadget, group: example.com, scope: cluster}]}\n",
			want: []string{
				`propagation.kinds[0].kind: Invalid value: "secrets": must be written as in manifests, such as Secret or ConfigMap`,
				`propagation.kinds[1].version: Invalid value: "core/v1": must be a version such as v1, without its group`,
				`propagation.kinds[2].group: Invalid value: "example.com/v1": must be a group such as apps, without a version; empty for the ` +
					`core group`,
				`propagation.kinds[3].kind: Required value: a kind such as Secret`,
				`propagation.kinds[4].scope: Invalid value: "cluster": must be Auto, Cluster or Namespaces`,
			},
		},
		"DistributionKinds": {
			reason: "distribution.kinds: namespaced, no RBAC, not ours, not Event, Pod, ServiceAccount",
			body: `distribution:
  kinds: [{version: v1, kind: Secret}, {version: v1, kind: Secret}, {group: rbac.authorization.k8s.io, version: v1, kind: Role}, ` +
				`{group: tenancy.warren.dev, version: v1alpha1, kind: SubNamespace},
    {version: v1, kind: Event}, {version: v1, kind: Pod}, {version: v1, kind: ServiceAccount}, {version: v1, kind: Namespace}, ` +
				`{kind: ConfigMap}]
`,
			want: []string{
				`distribution.kinds[1]: Duplicate value: "Secret"`,
				`distribution.kinds[2].kind: Forbidden: Role can't be distributed`,
				`distribution.kinds[3].kind: Forbidden: SubNamespace can't be distributed`,
				`distribution.kinds[4].kind: Forbidden: Event can't be distributed`,
				`distribution.kinds[5].kind: Forbidden: Pod can't be distributed`,
				`distribution.kinds[6].kind: Forbidden: ServiceAccount can't be distributed`,
				`distribution.kinds[7].kind: Forbidden: "Namespace" is cluster-scoped`,
				`distribution.kinds[8].version: Required value: a version such as v1`,
			},
		},
		"NeverPropagate": {
			reason: "at least one of the last three; globs and labels are sound; every kind if none is named",
			body: `propagation: {neverPropagate: [{kind: Secret}, {name: "a["}, {kind: Secret, type: "b["}, {labels: {"-": a, k: "/"}}, ` +
				`{group: apps, name: x}, {labels: {owner: helm}}]}`,
			want: []string{
				`propagation.neverPropagate[0]: Required value: at least one of name, type and labels`,
				`propagation.neverPropagate[1].name: Invalid value: "a[": must be a pattern of path.Match: syntax error in pattern`,
				`propagation.neverPropagate[2].type: Invalid value: "b[": must be a pattern of path.Match: syntax error in pattern`,
				`propagation.neverPropagate[3].labels: Invalid value: "-": must be a label key: name part must consist of alphanumeric ` +
					`characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or ` +
					`'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`propagation.neverPropagate[3].labels[k]: Invalid value: "/": must be a label value: a valid label must be an empty string or ` +
					`consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  ` +
					`or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`propagation.neverPropagate[4].kind: Required value: a kind such as Secret`,
			},
		},
		"Generators": {
			reason: "sound kinds, each once",
			body: "featureGates: {PropagateGenerated: true}\npropagation: {generators: [{group: apps, kind: Deployment}, {kind: " +
				"Deployment}, {group: example.com}, {group: apps, kind: Deployment}]}\n",
			want: []string{
				`propagation.generators[1].group: Required value: Deployment is in group apps`,
				`propagation.generators[2].kind: Required value: a kind such as Secret`,
				`propagation.generators[3]: Duplicate value: "Deployment.apps"`,
			},
		},
		"GeneratorsWithoutGate": {
			reason: "a gate that is closed",
			body:   "propagation: {generators: [{group: apps, kind: Deployment}]}\n",
			want: []string{
				`propagation.generators: Forbidden: needs featureGates.PropagateGenerated: true, with which the operator may label what is generated`,
			},
		},
	}.check(t)
}

func TestGuardrailsSample(t *testing.T) {
	t.Run("PROP-E13 config/samples/guardrails/config.yaml is accepted, and has the kind of every object in the sample with the label "+
		"propagate, and the default kinds", func(t *testing.T) {
		c, err := configfile.Load("../../config/samples/guardrails/config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var wanted []schema.GroupKind
		for _, kind := range configfile.Default().Propagation.Kinds {
			wanted = append(wanted, kind.GroupKind())
		}
		files, err := filepath.Glob("../../config/samples/guardrails/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			object := &metav1.PartialObjectMetadata{}
			if err := yaml.Unmarshal(text, object); err != nil {
				t.Fatal(err)
			}
			if object.Labels["tenancy.warren.dev/propagate"] != "" {
				wanted = append(wanted, object.GroupVersionKind().GroupKind())
			}
		}
		if len(wanted) != 4+3 {
			t.Errorf("4 default kinds and 3 guardrails make %d kinds: %v", len(wanted), wanted)
		}
		for _, kind := range wanted {
			if c.Propagated(kind) == nil {
				t.Errorf("propagation.kinds lacks %s", kind)
			}
		}
	})
}
