package webhooks_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// secretsOnly is an API server that serves Secrets alone, and accepts each dry run.
func secretsOnly() meta.RESTMapper {
	gv := schema.GroupVersion{Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	mapper.Add(gv.WithKind("Secret"), meta.RESTScopeNamespace)
	return mapper
}

type accepting struct{ client.Writer }

func (accepting) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

func (accepting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// distributionTo is a ResourceDistribution of a Secret to these namespaces.
func distributionTo(policy v1alpha1.ConflictPolicy, namespaces ...v1alpha1.NamespaceName) *v1alpha1.ResourceDistribution {
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "rd"}}
	rd.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)}
	rd.Spec.ConflictPolicy = policy
	for _, name := range namespaces {
		rd.Spec.Targets.IncludedNamespaces = append(rd.Spec.Targets.IncludedNamespaces, v1alpha1.NamespaceReference{Name: name})
	}
	return rd
}

func TestResourceDistribution(t *testing.T) {
	overwriting := func(c *config.OperatorConfiguration) { c.Distribution.AllowOverwrite = true }
	field := func() *cluster {
		return grown(build.Namespace("d1")).allowing("create secrets d1", "update secrets d1")
	}
	deaf := field()
	deaf.deaf = errors.New("the authorizer is away")
	cases := map[string]struct {
		cluster *cluster
		policy  v1alpha1.ConflictPolicy
		want    answered
	}{
		"Create":                   {field(), v1alpha1.ConflictFail, allowed()},
		"DIST-D30 NotConfigured":   {field().allowing("delete secrets d1"), v1alpha1.ConflictOverwrite, refused(403, "Overwrite is disabled")},
		"DIST-D60 AuthorizerFails": {deaf, v1alpha1.ConflictFail, refused(500, "could not ask the authorizer")},
		"DIST-D30 WithoutDelete": {field().configured(overwriting), v1alpha1.ConflictOverwrite,
			refused(403, `user "alice" may not delete secrets in namespace "d1"`)},
		"WithDelete": {field().configured(overwriting).allowing("delete secrets d1"), v1alpha1.ConflictOverwrite, allowed()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, "", tc.cluster.as(t, alice, webhooks.PathDistributions, nil, distributionTo(tc.policy, "d1")))
		})
	}
}
