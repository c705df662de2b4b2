package guides_test

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// line runs a command line of kubectl as a cluster admin.
func line(ctx context.Context, args ...string) func() answer {
	return func() answer { return asAdmin(ctx, args...) }
}

var _ = Describe("an object from which nothing will be copied", func() {
	It("PROP-E1 in a tree, annotation propagate gets a Warning with the kubectl label command, and an annotation of other operators one "+
		"that names it; others, and plain namespaces, get none", func(ctx SpecContext) {
		world.Create(ctx, build.Root("e1-org"), build.Secret("e1-org", "s", "x"), build.Namespace("e1-plain"), build.Secret("e1-plain", "s", "x"))
		annotate := func(namespace, annotation string) func() answer {
			return line(ctx, "annotate", "secret", "s", "-n", namespace, annotation, "--overwrite", "--dry-run=server")
		}
		Eventually(annotate("e1-org", v1alpha1.LabelPropagate+"=update")).WithContext(ctx).Should(warns(
			"annotation tenancy.warren.dev/propagate does nothing, because propagate is a label: kubectl label secrets s -n e1-org " +
				"tenancy.warren.dev/propagate=update"))
		for _, foreign := range []string{"tenancy.warren.dev/treeSelect", "propagate.tenancy.warren.dev/treeSelect",
			"propagate.hnc.x-k8s.io/treeSelect",
			"propagate.hnc.x-k8s.io/none", "accurate.cybozu.com/propagate"} {
			Expect(annotate("e1-org", foreign+"=update")()).
				To(warns("these annotations do nothing: " + foreign + "; use label tenancy.warren.dev/propagate"))
		}
		Expect(annotate("e1-org", "memo=1")()).To(silent())
		Expect(annotate("e1-plain", v1alpha1.LabelPropagate+"=update")()).To(silent(), "namespaces in no tree are not looked into")
	})

	It("PROP-E2 label propagate=update gets a Warning with two commands in a plain namespace, and \"is protected and can be in no tree\" "+
		"in default; value none, or a root, none", func(ctx SpecContext) {
		world.Create(ctx, build.Root("e2-org"), build.Secret("e2-org", "s", "x"), build.Namespace("e2-plain"), build.Secret("e2-plain", "s", "x"),
			build.Secret("default", "e2-s", "x"))
		label := func(namespace, name string) func() answer {
			return line(ctx, "label", "secret", name, "-n", namespace, v1alpha1.LabelPropagate+"=update", "--dry-run=server")
		}
		Eventually(label("e2-plain", "s")).WithContext(ctx).
			Should(warns("nothing is copied from this object, because namespace e2-plain is in no tree: place the namespace " +
				"(kubectl warren set e2-plain --parent PARENT), or make it a root (kubectl warren set-type e2-plain root)"))
		Expect(label("default", "e2-s")()).To(warns("because namespace default is protected and can be in no tree: put the object into a root"))
		Expect(label("e2-org", "s")()).To(silent())
		Expect(line(ctx, "label", "secret", "s", "-n", "e2-plain", v1alpha1.LabelPropagate+"=none", "--dry-run=server")()).To(silent())
	})

	It("PROP-E3 select with env in prod on a labelled source gets Warning \"is no "+
		"label selector\"; a valid selector gets none", func(ctx SpecContext) {
		world.Create(ctx, build.Root("e3-org"), build.Source(build.Secret("e3-org", "s", "x"), v1alpha1.ModeUpdate))
		sel := func(selector string) func() answer {
			return line(ctx, "annotate", "secret", "s", "-n", "e3-org", v1alpha1.AnnotationSelect+"="+selector, "--overwrite", "--dry-run=server")
		}
		Eventually(sel("env in prod")).WithContext(ctx).Should(warns("annotation tenancy.warren.dev/select is no label selector"))
		Expect(sel("env=prod,!team-b.tree.tenancy.warren.dev/depth")()).To(silent())
	})

	It("PROP-E4 label propagate=update on a kind that is not configured gets Warning \"does not have kind ResourceQuota among "+
		"propagation.kinds\"", func(ctx SpecContext) {
		world.Create(ctx, build.Root("e4-org"))
		Expect(asAdmin(ctx, "create", "quota", "e4", "-n", "e4-org", "--hard=pods=1").Code).To(BeZero())
		Eventually(line(ctx, "label", "quota", "e4", "-n", "e4-org", v1alpha1.LabelPropagate+"=update", "--dry-run=server")).
			WithContext(ctx).Should(warns(
			"nothing is copied from this object, because the configuration does not have kind ResourceQuota among propagation.kinds: ask a " +
				"cluster admin to add it"))
	})

	It("PROP-E5 trace and describe report a labelled object of a plain namespace, and one with an invalid selector, as not copied, with "+
		"the reason; doctor names both", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("e5-plain"), build.Source(build.Secret("e5-plain", "s", "x"), v1alpha1.ModeUpdate),
			build.Root("e5-org"),
			build.Annotated(build.Source(build.Secret("e5-org", "s", "x"), v1alpha1.ModeUpdate), v1alpha1.AnnotationSelect, "env in prod"))
		for _, c := range []struct{ namespace, says string }{{"e5-plain", "namespace e5-plain is in no tree"},
			{"e5-org", "is no label selector"}} {
			Expect(asAdmin(ctx, "warren", "trace", "secret/s", "-n", c.namespace)).To(HaveField("Out",
				And(HavePrefix("secret/s in "+c.namespace+" is neither a copy nor a source"), ContainSubstring(c.says))))
			Expect(asAdmin(ctx, "warren", "describe", c.namespace)).To(HaveField("Out", MatchRegexp(`Secret +s +\(not copied: .*`+c.says)))
		}
		Expect(asAdmin(ctx, "warren", "doctor")).To(HaveField("Out",
			MatchRegexp("warning +sources +these objects have the label propagate, but the operator can't copy them: "+
				".*Secret e5-org/s, Secret e5-plain/s")))
	})

	It("PROP-E9 label propagate=update on a ConfigMap that the platform writes into every namespace gets a Warning that nothing is "+
		"copied from it", func(ctx SpecContext) {
		world.Create(ctx, build.Root("e9-org"))
		for _, name := range []string{"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"} {
			if name != "kube-root-ca.crt" {
				world.Create(ctx, build.ConfigMap("e9-org", name, ""))
			}
			Eventually(line(ctx, "label", "configmap", name, "-n", "e9-org", v1alpha1.LabelPropagate+"=update", "--dry-run=server")).
				WithContext(ctx).Should(warns("nothing is copied from this object, because the platform writes " + name + " into every namespace"))
		}
	})

	It("PROP-E10 with the default kinds, config/samples/guardrails leaves its tenant Ready False KindNotPropagated; doctor names the three "+
		"objects; describe of template and tenant does too", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		Expect(asAdmin(ctx, "apply", "-k", filepath.Join(root, "config", "samples", "guardrails")).Code).To(BeZero())
		world.Says(ctx, build.Tenant("bounded").Object(), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonKindNotPropagated,
			`ResourceQuota "warren-rail-quota" of template guardrails`, `LimitRange "warren-rail-limits" of template guardrails`,
			`NetworkPolicy "warren-rail-default-deny" of template guardrails`)
		Expect(asAdmin(ctx, "warren", "doctor")).To(HaveField("Out", MatchRegexp("warning +sources +.*the operator copies no objects of their "+
			"kinds: LimitRange guardrails/warren-rail-limits, NetworkPolicy guardrails/warren-rail-default-deny, ResourceQuota "+
			"guardrails/warren-rail-quota; .*add LimitRange, NetworkPolicy.networking.k8s.io, ResourceQuota to propagation.kinds")))
		for namespace, from := range map[string]string{"guardrails": `\(not copied: `, "bounded": `\(no copy from guardrails: `} {
			Expect(asAdmin(ctx, "warren", "describe", namespace)).To(HaveField("Out", SatisfyAll(
				MatchRegexp(`ResourceQuota +warren-rail-quota +`+from+"the configuration doesn't have ResourceQuota among propagation.kinds"),
				MatchRegexp(`NetworkPolicy.networking.k8s.io +warren-rail-default-deny +`+from))), namespace)
		}
	})
})

// warns matches a request that passed, with one Warning.
func warns(text string) types.GomegaMatcher {
	return And(HaveField("Code", 0), HaveField("Err", MatchRegexp(`^Warning: [^\n]*\n$`)), HaveField("Err", ContainSubstring(text)))
}

// silent matches a request that passed without a word.
func silent() types.GomegaMatcher { return And(HaveField("Code", 0), HaveField("Err", BeEmpty())) }
