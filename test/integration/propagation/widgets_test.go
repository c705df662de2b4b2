package propagation_test

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// widgets is the CRD of a namespaced kind whose fields the API server completes. Kind and plural say what it is called.
func widgets(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	text := func(byDefault string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"` + byDefault + `"`)}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Default: &apiextensionsv1.JSON{Raw: []byte(`{}`)},
						Properties: map[string]apiextensionsv1.JSONSchemaProps{"colour": text("red"), "shape": text("round")},
					}},
				}},
			}},
		},
	}
}

// manifest is the CRD as devcluster.Apply takes it.
func manifest(crd *apiextensionsv1.CustomResourceDefinition) (devcluster.Manifests, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	unstructured.RemoveNestedField(u.Object, "status")
	return devcluster.Manifests{u}, nil
}

func installWidgets(ctx context.Context, cp *controlplane.ControlPlane) error {
	manifests, err := manifest(widgets("Widget", "widgets"))
	if err != nil {
		return err
	}
	return devcluster.Apply(ctx, cp.Config(controlplane.Admin), manifests)
}

// widget returns an object of one of the kinds that widgets defines.
func widget(kind, namespace, name, colour string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"colour": colour}}}
	u.SetAPIVersion("example.com/v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
