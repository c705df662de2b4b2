package takeoff_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

// arguments are those of hack/deploy.sh.
type arguments struct{ overlay, image, config, version, keepCRDs string }

var _ = Describe("make deploy", Ordered, func() {
	var s site

	BeforeAll(func(ctx SpecContext) {
		cp, err := controlplane.Start(ctx, controlplane.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		described := &devcluster.World{Access: cp.Access}
		w, err := devcluster.Connect(described.Bytes())
		Expect(err).NotTo(HaveOccurred())
		s = site{words.Cluster{World: w}, "standard"}
	})

	deploy := func(ctx context.Context, a arguments) (string, error) {
		GinkgoHelper()
		return s.tryScript(ctx, "deploy.sh", a.overlay, a.image, a.config, "none", a.version, a.keepCRDs)
	}
	good := arguments{overlay: "standard", image: "registry.example/warren:v1", keepCRDs: "false"}
	refuses := func(ctx context.Context, message string, change func(*arguments)) {
		GinkgoHelper()
		a := good
		change(&a)
		before := s.deployed(ctx)
		answer, err := deploy(ctx, a)
		Expect(err).To(HaveOccurred(), answer)
		Expect(strings.TrimSpace(answer)).To(SatisfyAll(HavePrefix("error: "), ContainSubstring(message), Not(ContainSubstring("\n"))))
		Expect(s.deployed(ctx)).To(Equal(before), "nothing is changed")
	}

	It("FLT-U18 make deploy refuses an unknown overlay, an image without tag and digest, and a missing or wrong configuration file, in one "+
		"sentence, and changes nothing", func(ctx SpecContext) {
		wrong := filepath.Join(s.Dir, "wrong.yaml")
		misspelled := "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nconcurrency: many\n"
		Expect(os.WriteFile(wrong, []byte(misspelled), 0o600)).To(Succeed())
		refuses(ctx, "OVERLAY is loose: must be one of hardened open standard", func(a *arguments) { a.overlay = "loose" })
		refuses(ctx, "IMG is registry.example/warren: must end in a tag or digest", func(a *arguments) { a.image = "registry.example/warren" })
		refuses(ctx, "CONFIG is /no/file.yaml: no such file, or not readable", func(a *arguments) { a.config = "/no/file.yaml" })
		refuses(ctx, "concurrency", func(a *arguments) { a.config = wrong })
	}, SpecTimeout(2*suite.Patience))

	It("FLT-U18 make deploy refuses older CRDs, and to skip two minor versions or a major one, in one sentence with the next step; nothing "+
		"is changed; FLT-U18 make deploy may skip one minor version, deploys a clone without a version, and with KEEP_CRDS=true an older "+
		"operator beside newer CRDs", func(ctx SpecContext) {
		for _, version := range []string{"v1.1.0", "v1.3.0"} {
			a := good
			a.version = version
			answer, err := deploy(ctx, a)
			Expect(err).NotTo(HaveOccurred(), answer)
			Expect(s.crdVersion(ctx)).To(Equal(version))
		}
		differ := "CustomResourceDefinition lnamespaces.tenancy.warren.dev on this cluster is of version v1.3.0, and this clone of "
		refuses(ctx, differ+"v1.2.9: take a clone of at least that version, or add KEEP_CRDS=true to return to an older operator",
			func(a *arguments) { a.version = "v1.2.9" })
		refuses(ctx, differ+"v1.6.0: upgrade to v1.5 first, because an upgrade may skip one minor version only",
			func(a *arguments) { a.version = "v1.6.0" })
		refuses(ctx, differ+"v3.0.0: upgrade to v2 first, because an upgrade may not skip a major version",
			func(a *arguments) { a.version = "v3.0.0" })

		for _, a := range []arguments{
			{overlay: "standard", image: "registry.example/warren:v1.2.9", version: "v1.2.9", keepCRDs: "true"},
			{overlay: "standard", image: "registry.example/warren:clone", version: "0123456", keepCRDs: "true"},
		} {
			answer, err := deploy(ctx, a)
			Expect(err).NotTo(HaveOccurred(), answer)
			Expect(s.crdVersion(ctx)).To(Equal("v1.3.0"), "the CRDs stay")
			image, _ := s.kubectl(ctx, controlplane.Admin,
				"get deployment "+deployment+" -n "+system+" -o jsonpath={.spec.template.spec.containers[0].image}")
			Expect(image).To(Equal(a.image))
		}
		without := good
		without.version = "0123456"
		answer, err := deploy(ctx, without)
		Expect(err).NotTo(HaveOccurred(), "a clone without a version has nothing to compare: %s", answer)
	}, SpecTimeout(4*suite.Patience))
})

// deployed is all that make deploy writes, with generation and UID.
func (s site) deployed(ctx context.Context) string {
	GinkgoHelper()
	answer, allowed := s.kubectl(ctx, controlplane.Admin, "get namespaces,crds,clusterroles,clusterrolebindings,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings,deployments,configmaps,services,roles,rolebindings -A --ignore-not-found "+
		"-o jsonpath={range.items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}:{.metadata.generation}:{.metadata.uid}{\"\\n\"}{end}")
	Expect(allowed).To(BeTrue(), answer)
	return answer
}

func (s site) crdVersion(ctx context.Context) string {
	GinkgoHelper()
	return s.lnamespaceDefinition(ctx).Labels["app.kubernetes.io/version"]
}
