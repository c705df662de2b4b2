package fault_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// walls are what keeps invalid objects away from a cluster: the validation of our CRDs, and the bindings of our policies.
type walls struct {
	stage    *stage
	crds     []*apiextensionsv1.CustomResourceDefinition
	bindings []admissionv1.ValidatingAdmissionPolicyBinding
}

// tearDown takes the walls away until rebuild, or until the case ends.
func (s *stage) tearDown(ctx context.Context) *walls {
	GinkgoHelper()
	w := &walls{stage: s}
	DeferCleanup(w.rebuild)
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	Expect(s.Admin().List(ctx, bindings)).To(Succeed())
	for i := range bindings.Items {
		if strings.HasPrefix(bindings.Items[i].Name, "warren-") {
			w.bindings = append(w.bindings, *bindings.Items[i].DeepCopy())
			Expect(s.Admin().Delete(ctx, &bindings.Items[i])).To(Succeed())
		}
	}
	for _, name := range ourCRDs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(s.Admin().Get(ctx, keyOf(name+"."+v1alpha1.Domain), crd)).To(Succeed())
		w.crds = append(w.crds, crd.DeepCopy())
		for i := range crd.Spec.Versions {
			loosen(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
		Expect(s.Admin().Update(ctx, crd)).To(Succeed())
	}
	return w
}

// loosen has a schema check nothing but types.
func loosen(schema *apiextensionsv1.JSONSchemaProps) {
	schema.XValidations, schema.Pattern, schema.Enum, schema.Minimum, schema.MinLength = nil, "", nil, nil, nil
	for name, property := range schema.Properties {
		loosen(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		loosen(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		loosen(schema.AdditionalProperties.Schema)
	}
}

// rebuild puts the walls back, and waits until they are in force.
func (w *walls) rebuild(ctx context.Context) {
	GinkgoHelper()
	admin := w.stage.Admin()
	for _, saved := range w.crds {
		Eventually(ctx, func() error {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := admin.Get(ctx, client.ObjectKeyFromObject(saved), crd); err != nil {
				return err
			}
			crd.Spec = saved.Spec
			return admin.Update(ctx, crd)
		}).Should(Succeed())
	}
	for _, saved := range w.bindings {
		binding := saved.DeepCopy()
		binding.ResourceVersion, binding.UID = "", ""
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, binding))).To(Succeed())
	}
	w.crds, w.bindings = nil, nil
	refused := func(object client.Object) func() error {
		return func() error { return admin.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll) }
	}
	Eventually(ctx, refused(build.Tenant("walls").Users("").Object())).Should(MatchError(ContainSubstring("spec.users[0].name")))
	Eventually(ctx, refused(forged("default", "walls", "walls"))).Should(MatchError(ContainSubstring("warren-copy")))
}
