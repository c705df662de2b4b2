package api

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// definition is the schema of a CRD, in the API server's own code.
type definition struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// definitions keeps what is costly to compile, by the name of the CRD. The manifests are the same in all histories of a process.
var definitions sync.Map

func customKind(u *unstructured.Unstructured) *Kind {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		panic(fmt.Sprintf("decoding CRD %s: %v", u.GetName(), err))
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Subresources == nil {
		panic("the model knows CRDs of one version with a status alone, not " + crd.Name)
	}
	version := crd.Spec.Versions[0]
	traits := "status counts"
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		traits += " cluster"
	}
	gvk := runtimeGVK(crd, version.Name)
	k := newKind(gvk, crd.Spec.Names.Plural, traits)
	if kept, found := definitions.Load(crd.Name); found {
		k.definition = kept.(*definition) //nolint:forcetypeassert // nothing else is kept
		return k
	}
	k.definition = compile(crd.Name, version.Schema.OpenAPIV3Schema)
	definitions.Store(crd.Name, k.definition)
	return k
}

func compile(name string, written *apiextensionsv1.JSONSchemaProps) *definition {
	inner := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(written, inner, nil); err != nil {
		panic(fmt.Sprintf("converting the schema of %s: %v", name, err))
	}
	d := &definition{}
	var err error
	if d.structural, err = structural.NewStructural(inner); err != nil {
		panic(fmt.Sprintf("reading the schema of %s: %v", name, err))
	}
	if d.validator, _, err = validation.NewSchemaValidator(inner); err != nil {
		panic(fmt.Sprintf("reading the schema of %s: %v", name, err))
	}
	d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	return d
}

// prepare prunes, sets defaults and validates.
func (d *definition) prepare(k *Kind, u *unstructured.Unstructured, old *Record) *Refusal {
	managed := u.GetManagedFields()
	u.SetManagedFields(nil)
	pruning.Prune(u.Object, d.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, d.structural)
	defaulting.Default(u.Object, d.structural)
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	errs := validation.ValidateCustomResource(nil, u.Object, d.validator)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, u.Object, d.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, u.Object)...)
	if d.rules != nil && len(errs) == 0 {
		var was any
		if before != nil {
			was = before
		}
		wrong, _ := d.rules.Validate(context.Background(), nil, d.structural, u.Object, was, celconfig.RuntimeCELCostBudget)
		errs = append(errs, wrong...)
	}
	u.SetManagedFields(managed)
	if len(errs) > 0 {
		return invalid(k, u.GetName(), errs)
	}
	return nil
}

func runtimeGVK(crd *apiextensionsv1.CustomResourceDefinition, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
}
