package attack_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

const (
	enforces = "pod-security.kubernetes.io/enforce"
	version  = "pod-security.kubernetes.io/enforce-version"
)

// enforce is a patch of the pod security level that a namespace enforces.
func enforce(namespace, level string) request {
	return merge("namespace "+namespace, ours(enforces, level))
}

var _ = Describe("pod security with the operator running", func() {
	f := running

	It("SUB-I30 without inheritance in the file, enforce and warn of the root reach a new sub-namespace, and PodSecurity refuses a sudoer's "+
		"privileged pod there; SUB-I30 a stricter level of the root reaches its sub-namespace; a lower one does not (KeyNotAllowed), until a "+
		"cluster admin lowers it there too (Synced)", func(ctx SpecContext) {
		sudoer := actor{user: "bob", as: rest.ImpersonationConfig{UserName: "bob", Groups: []string{"levels-sudoers"}}}
		f.given(ctx, admin, create("lnamespace levels", `{spec: {users: [{kind: User, name: alice}], sudoers: [{kind: User, name: bob}]}}`))
		f.appears(ctx, "rolebinding levels/warren:users")
		f.given(ctx, clara,
			merge("namespace levels", `{metadata: {labels: {`+enforces+`: baseline, pod-security.kubernetes.io/warn: restricted}}}`))
		f.given(ctx, alice, create("subnamespace levels/levels-web", ``))
		f.levels(ctx, "levels-web", HaveKeyWithValue(enforces, "baseline"), HaveKeyWithValue("pod-security.kubernetes.io/warn", "restricted"))
		f.appears(ctx, "rolebinding levels-web/warren:sudoers")
		Eventually(ctx, func(ctx context.Context) error {
			return create("pod levels-web/breakout", privilegedPod).send(ctx, f.caller(sudoer))
		}).
			Should(MatchError(ContainSubstring("violates PodSecurity")), "the sudoer may make pods there, and no privileged one")

		f.given(ctx, clara, enforce("levels", "restricted"))
		f.levels(ctx, "levels-web", HaveKeyWithValue(enforces, "restricted"))
		f.given(ctx, clara, enforce("levels", "baseline"))
		f.keepsLevel(ctx, "levels", "levels-web")
		f.levels(ctx, "levels-web", HaveKeyWithValue(enforces, "restricted"))
		f.given(ctx, clara, enforce("levels-web", "baseline"))
		Eventually(ctx, f.synced).WithArguments("levels", "levels-web").Should(Equal(string(v1alpha1.ReasonSynced)))
		f.levels(ctx, "levels-web", HaveKeyWithValue(enforces, "baseline"))
	})

	It("SUB-I31 a sub-namespace keeps the stricter level and version of its root (KeyNotAllowed), whatever its SubNamespace's spec or "+
		"overriddenLabels ask for; SUB-I31 a placed namespace keeps its own stricter level; a sub-namespace below inherits that, and keeps it "+
		"when it leaves the forest", func(ctx SpecContext) {
		f.given(ctx, admin, create("lnamespace strict", `{spec: {users: [{kind: User, name: alice}]}}`), create("lnamespace loose", ``))
		f.appears(ctx, "rolebinding strict/warren:users")
		f.given(ctx, clara, merge("namespace strict", `{metadata: {labels: {`+enforces+`: restricted, `+version+`: v1.30}}}`),
			enforce("loose", "baseline"))
		f.given(ctx, alice,
			create("subnamespace strict/strict-weak", `{spec: {labels: {`+enforces+`: baseline}}}`),
			create("subnamespace strict/strict-old", `{spec: {labels: {`+version+`: v1.20}}}`),
			create("subnamespace strict/strict-own", ``))
		f.given(ctx, clara, create("hierarchyconfiguration strict-own/hierarchy", `{spec: {overriddenLabels: [`+enforces+`, `+version+`]}}`))
		for _, name := range []string{"strict-weak", "strict-old", "strict-own"} {
			f.levels(ctx, name, HaveKeyWithValue(enforces, "restricted"), HaveKeyWithValue(version, "v1.30"))
			f.keepsLevel(ctx, "strict", name)
		}

		f.given(ctx, clara, create("namespace loose-strict", `{metadata: {labels: {$D/parent: loose, `+enforces+`: restricted}}}`))
		f.given(ctx, clara, create("subnamespace loose-strict/loose-below", ``))
		f.levels(ctx, "loose-below", HaveKeyWithValue(enforces, "restricted"))
		f.levels(ctx, "loose-strict", HaveKeyWithValue(enforces, "restricted"))
		f.given(ctx, clara, merge("namespace loose-below", `{metadata: {labels: {$D/parent: null, $D/bound: null}}}`))
		f.levels(ctx, "loose-below", HaveKeyWithValue(enforces, "restricted"), Not(HaveKey("loose.tree."+v1alpha1.Domain+"/depth")))
	})
})

// levels waits until the labels of a namespace match all of so.
func (f *fixture) levels(ctx context.Context, name string, so ...types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
		namespace := build.Namespace(name)
		err := f.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return namespace.Labels, err
	}).Should(And(so...), name)
}

// keepsLevel waits until the SubNamespace reports that its namespace doesn't get a lower level.
func (f *fixture) keepsLevel(ctx context.Context, parent, name string) {
	GinkgoHelper()
	Eventually(ctx, f.synced).WithArguments(parent, name).Should(Equal(string(v1alpha1.ReasonKeyNotAllowed)), name)
}

// synced is the reason of condition MetadataSynced of a SubNamespace.
func (f *fixture) synced(ctx context.Context, parent, name string) (string, error) {
	sub := build.SubNamespace(parent, name)
	if err := f.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub); err != nil {
		return "", err
	}
	c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionMetadataSynced)
	if c == nil {
		return "", nil
	}
	return c.Reason, nil
}
