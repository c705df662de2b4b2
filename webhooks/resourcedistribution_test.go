package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// secretsOnly returns the mapper of an API server that serves no kind but Secret.
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

// distributionTo returns a ResourceDistribution of a Secret to these namespaces.
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
		c := grown(build.Namespace("d1")).allowing("create secrets d1", "update secrets d1")
		c.mapper = secretsOnly()
		return c
	}
	deaf := field()
	deaf.deaf = errors.New("the authorizer is away")
	cases := map[string]struct {
		cluster *cluster
		policy  v1alpha1.ConflictPolicy
		want    answered
	}{
		"Create": {field(), v1alpha1.ConflictFail, allowed()},
		"DIST-D30 Overwrite is refused if the configuration does not allow it, whatever rights the requester " +
			"has": {field().allowing("delete secrets d1"), v1alpha1.ConflictOverwrite, refused(403, "Overwrite is disabled")},
		"DIST-D60 the request is refused with 500 if the authorizer " +
			"fails": {deaf, v1alpha1.ConflictFail, refused(500, "could not ask the authorizer")},
		"DIST-D30 Overwrite, which the configuration allows, is refused if the requester may not delete Secrets in a " +
			"target": {field().configured(overwriting), v1alpha1.ConflictOverwrite,
			refused(403, `user "alice" may not delete secrets in namespace "d1"`)},
		"WithDelete": {field().configured(overwriting).allowing("delete secrets d1"), v1alpha1.ConflictOverwrite, allowed()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, "", tc.cluster.as(t, alice, webhooks.PathDistributions, nil, distributionTo(tc.policy, "d1")))
		})
	}
}

// The answer names the objects that ask for the name of a missing namespace: their namespaces get the copy.
func TestMissingTargets(t *testing.T) {
	field := func(objects ...client.Object) *cluster {
		c := grown(append(objects, build.Root("pay"))...).allowing("create secrets ghost", "create secrets web")
		c.mapper = secretsOnly()
		return c
	}
	for name, tc := range map[string]struct {
		cluster *cluster
		want    answered
	}{
		"DIST-D93 the Warning about missing names states that a cluster admin's namespace or LNamespace gets the copy, " +
			"and a tenant's does " +
			"not": {field(), allowed("not found: ghost, web; such a namespace gets the copy if a cluster administrator creates it or " +
			"its LNamespace, but not if a tenant does")},
		"DIST-D93 the Warning names an LNamespace or SubNamespace that waits for a missing name, because its namespace gets the " +
			"copy": {field(sudoed("ghost"), build.SubNamespace("pay", "web")), allowed("not found: ghost, web;",
			"as soon as they have their namespaces: LNamespace ghost, SubNamespace pay/web; if one must not get it, take its name out of")},
		"DIST-D93 there is no Warning if the names exist": {field(build.Namespace("ghost"), build.Namespace("web")), allowed()},
	} {
		t.Run(name, func(t *testing.T) {
			rd := distributionTo(v1alpha1.ConflictFail, "ghost", "web")
			tc.want.check(t, "", tc.cluster.as(t, alice, webhooks.PathDistributions, nil, rd))
		})
	}
}

// Creating 10,000 namespaces takes minutes; the webhook counts the namespaces of the forest, so the test makes only these.
func TestSizeOfAllCopies(t *testing.T) {
	const many = 10_000
	c := grown()
	for i := range many {
		c.forest = c.forest.WithNamespace(&forest.Namespace{Name: fmt.Sprintf("n%05d", i), UID: fmt.Sprint(i)})
	}
	c.mapper = meta.NewDefaultRESTMapper(nil)
	rd := distributionTo(v1alpha1.ConflictFail)
	for name, tc := range map[string]struct {
		bytes int
		want  answered
	}{
		"DIST-D55 a ConfigMap of 1 MiB for 10,000 namespaces is refused: 9.8 GiB \"would be written to " +
			"etcd\"": {1 << 20, refused(403, "about 9.8 GiB would be written to etcd; the limit is 1 GiB")},
		"DIST-D55 a ConfigMap of 1.45 MiB for 10,000 namespaces is refused for its own size: \"the limit is " +
			"1500000\"": {1485 << 10, refused(403, "the limit is 1500000")},
	} {
		t.Run(name, func(t *testing.T) {
			rd := rd.DeepCopy()
			rd.Spec.Resource.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":%q}}`,
				strings.Repeat("x", tc.bytes))
			tc.want.check(t, "", c.as(t, alice, webhooks.PathDistributions, nil, rd))
		})
	}
}

// brokenMapper is the mapper of an operator whose discovery requests fail.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("discovery timed out")
}

// The user is told to install the kind's CRD only if the API server answers that it doesn't have the kind.
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
			`Invalid value: "Secret": distribution.kinds allows this kind, but the API server does not serve it: install its CRD first, `+
				`or correct its version, here and in distribution.kinds`)},
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
