// Package gitops_test shows how GitOps tools see the objects of Warren, by their own libraries: Flux waits by kstatus, and Argo CD runs the
// health script of docs/guides/gitops/argocd-cm.yaml.
package gitops_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// generation is the metadata.generation of every object here.
const generation = 2

func tenant(observed int64, conditions ...metav1.Condition) runtime.Object {
	return &v1alpha1.LNamespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "payments", Generation: generation},
		Status:     v1alpha1.LNamespaceStatus{ObservedGeneration: observed, Conditions: conditions},
	}
}

func subNamespace(observed int64, conditions ...metav1.Condition) runtime.Object {
	return &v1alpha1.SubNamespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SubNamespace"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "pay-web", Generation: generation},
		Status:     v1alpha1.SubNamespaceStatus{ObservedGeneration: observed, Conditions: conditions},
	}
}

func condition(kind v1alpha1.ConditionType, is metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: is, Reason: "Reason", Message: "said by the operator", ObservedGeneration: generation}
}

// judgement is the health that each of the two tools computes for an object.
type judgement struct{ Flux, Argo string }

var cases = map[string]struct {
	object runtime.Object
	want   judgement
}{
	"ready": {
		tenant(generation, condition(v1alpha1.ConditionReady, metav1.ConditionTrue)), judgement{"Current", "Healthy"},
	},
	"on its way": {
		tenant(generation, condition(v1alpha1.ConditionReady, metav1.ConditionFalse)), judgement{"InProgress", "Progressing"},
	},
	"ready in a former version": {
		tenant(generation-1, condition(v1alpha1.ConditionReady, metav1.ConditionTrue)), judgement{"InProgress", "Progressing"},
	},
	// As the guide says, kstatus regards an object without a status as ready.
	"an LNamespace that the operator has not seen":  {tenant(0), judgement{"Current", "Progressing"}},
	"a SubNamespace that the operator has not seen": {subNamespace(-1), judgement{"InProgress", "Progressing"}},
	"a SubNamespace that is ready": {
		subNamespace(generation, condition(v1alpha1.ConditionReady, metav1.ConditionTrue),
			condition(v1alpha1.ConditionStalled, metav1.ConditionFalse)),
		judgement{"Current", "Healthy"},
	},
	"a SubNamespace that only a person can help": {
		subNamespace(generation, condition(v1alpha1.ConditionReady, metav1.ConditionFalse),
			condition(v1alpha1.ConditionStalled, metav1.ConditionTrue)),
		judgement{"Failed", "Degraded"},
	},
}

func TestHealth(t *testing.T) {
	script := healthScript(t)
	for name, c := range cases {
		t.Run("ACC-T06 for kstatus and Argo CD: an unseen LNamespace Current, Progressing; another object unseen or in progress InProgress, "+
			"Progressing; a ready one Current, Healthy; one that needs a person Failed, Degraded: "+name, func(t *testing.T) {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.object)
			if err != nil {
				t.Fatal(err)
			}
			flux, err := status.Compute(&unstructured.Unstructured{Object: object})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, judgement{string(flux.Status), runHealthScript(t, script, object)}); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
		})
	}
}

// healthScript reads the script as Argo CD does.
func healthScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/gitops/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	customizations := map[string]map[string]string{}
	if err := yaml.Unmarshal([]byte(file.Data["resource.customizations"]), &customizations); err != nil {
		t.Fatal(err)
	}
	return customizations[v1alpha1.GroupVersion.Group+"/*"]["health.lua"]
}

// runHealthScript runs the script in the interpreter that Argo CD uses, with the object under the name that Argo CD gives it.
func runHealthScript(t *testing.T, script string, object map[string]any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	l := lua.NewState()
	defer l.Close()
	value, err := luajson.Decode(l, text)
	if err != nil {
		t.Fatal(err)
	}
	l.SetGlobal("obj", value)
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s: must be a table", l.Get(-1).Type())
	}
	if message := health.RawGetString("message").String(); message == "" {
		t.Error("the script says nothing")
	}
	return health.RawGetString("status").String()
}
