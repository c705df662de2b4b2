package webhooks_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/webhooks"
)

// brokenMapper is the mapper of an operator whose requests for discovery fail.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("discovery timed out")
}

// Only an answer of the API server that it lacks a kind is a reason to ask for the kind's CRD.
func TestKindOfDistribution(t *testing.T) {
	none := meta.NewDefaultRESTMapper(nil)
	for name, c := range map[string]struct {
		apiVersion, kind string
		mapper           meta.RESTMapper
		want             answered
	}{
		"not allowed": {"apps/v1", "Deployment", none, refused(403,
			"spec.resource.kind: Forbidden: kind Deployment is not allowed: allowed are ConfigMap, Secret (distribution.kinds")},
		"another version": {"v2", "Secret", none, refused(403,
			"spec.resource.kind: Forbidden: apiVersion v2 of kind Secret is not allowed: allowed are v1 (distribution.kinds")},
		"not served": {"v1", "Secret", none, refused(422,
			`Invalid value: "Secret": distribution.kinds allows this kind, but the API server does not serve it: install its CRD first`)},
		"no answer": {"v1", "Secret", brokenMapper{}, refused(500, "could not read the resource of kind Secret: discovery timed out")},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := grown()
			cluster.mapper = c.mapper
			rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
			resource := `{"apiVersion":"` + c.apiVersion + `","kind":"` + c.kind + `","metadata":{"name":"a"}}`
			rd.Spec.Resource = runtime.RawExtension{Raw: []byte(resource)}
			c.want.check(t, name, cluster.as(t, alice, webhooks.PathDistributions, nil, rd))
		})
	}
}
