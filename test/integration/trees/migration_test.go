package trees_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const migrating = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
subNamespaces:
  labels: [team]
propagation:
  kinds:
  - {group: rbac.authorization.k8s.io, kind: Role, mode: All}
  - {group: rbac.authorization.k8s.io, kind: RoleBinding, mode: All}
  - {kind: Secret}
  - {kind: ConfigMap, mode: All}
`

// migration is a cluster that has been filled with a peer's objects.
type migration struct {
	cluster
	peer string
	// config is the name of Warren's configuration file.
	config string
	kinds  []schema.GroupVersionKind
	// copies are what the peer has written: kind namespace/name.
	copies []string
}

var rbacKind = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}.WithKind

// apply applies the peer's definitions and objects.
func (s *migration) apply(ctx context.Context, files ...string) {
	GinkgoHelper()
	for _, file := range files {
		Eventually(func() string {
			_, problems, code := s.Kubectl(ctx, controlplane.Admin, "apply", "-f", filepath.Join("testdata", file))
			if code == 0 {
				return ""
			}
			return problems
		}).WithContext(ctx).Should(BeEmpty(), file)
	}
}

// copy copies an object of namespace from to each namespace of into, as the peer does. mark adds the peer's own labels or annotations to
// each copy.
func (s *migration) copy(ctx context.Context, kind schema.GroupVersionKind, name, from string, mark func(*unstructured.Unstructured),
	into ...string) {
	GinkgoHelper()
	for _, namespace := range into {
		source := s.object(ctx, kind, from, name)
		source.Object["metadata"] = map[string]any{"namespace": namespace, "name": name}
		mark(source)
		Expect(s.Admin().Create(ctx, source)).To(Succeed())
		s.copies = append(s.copies, kind.Kind+" "+namespace+"/"+name)
	}
}

func (s *migration) object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	Expect(s.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(Succeed())
	return object
}

// state is all objects of the users in the namespaces whose names begin with prefix: the metadata by kind, namespace and name.
func (s *migration) state(ctx context.Context, prefix string) map[string]*metav1.PartialObjectMetadata {
	GinkgoHelper()
	found := map[string]*metav1.PartialObjectMetadata{}
	for _, kind := range append(s.kinds, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		Expect(s.Admin().List(ctx, list)).To(Succeed())
		for _, object := range list.Items {
			if strings.HasPrefix(object.Namespace+object.Name, prefix) && object.Name != "kube-root-ca.crt" {
				found[kind.Kind+" "+object.Namespace+"/"+object.Name] = &object
			}
		}
	}
	return found
}

func uidsOf(state map[string]*metav1.PartialObjectMetadata) map[string]types.UID {
	uids := map[string]types.UID{}
	for name, object := range state {
		uids[name] = object.UID
	}
	return uids
}

// metadataOf is what a peer must find unchanged: labels and annotations, without kubectl's own.
func metadataOf(state map[string]*metav1.PartialObjectMetadata) map[string]map[string]string {
	found := map[string]map[string]string{}
	for name, object := range state {
		found[name] = maps.Clone(object.Labels)
		if found[name] == nil {
			found[name] = map[string]string{}
		}
		maps.Copy(found[name], object.Annotations)
		delete(found[name], "kubectl.kubernetes.io/last-applied-configuration")
	}
	return found
}

func (s *migration) args(args ...string) []string {
	return append([]string{"migrate", s.peer, "--config", s.config}, args...)
}

// planned is the plan as it is printed.
func (s *migration) planned(ctx context.Context, flags ...string) (plan struct {
	Steps []struct {
		Phase, Verb string
		Object      struct{ Kind, Namespace, Name string }
	}
	Gaps []struct{ What, Instead string }
}) {
	GinkgoHelper()
	Expect(yaml.Unmarshal([]byte(s.done(ctx, controlplane.Admin, s.args(append(flags, "-o", "yaml")...)...)), &plan)).To(Succeed())
	return plan
}

// pursue runs the plugin again and again. It kills each run after the first write, until a run ends by itself.
func (s *migration) pursue(ctx context.Context, args ...string) {
	GinkgoHelper()
	for range 60 {
		switch s.severed(ctx, 1, s.args(args...)...) {
		case 0:
			return
		case 1:
			s.done(ctx, controlplane.Admin, s.args(args...)...) // it fails, and says why
		}
	}
	Fail("it never ends")
}

// isHealthy waits until kubectl warren doctor finds nothing.
func (s *migration) isHealthy(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string {
		out, problems, code := s.warren(ctx, controlplane.Admin, "doctor")
		if code == 0 {
			return ""
		}
		return out + problems
	}).WithContext(ctx).Should(BeEmpty())
}

// isRid waits until what an undo deletes is gone: the operator takes its finalizers off a moment later.
func (s *migration) isRid(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		s.Gone(ctx, object)
	}
}

var (
	anchorKind       = schema.GroupVersionKind{Group: "hnc.x-k8s.io", Version: "v1alpha2", Kind: "SubnamespaceAnchor"}
	hncHierarchyKind = schema.GroupVersionKind{Group: "hnc.x-k8s.io", Version: "v1alpha2", Kind: "HierarchyConfiguration"}
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

var secretKind, configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
	schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// fill gives a cluster the objects that a peer leaves there while its operator still runs.
func (c cluster) fill(ctx context.Context, peer, config string, kinds ...schema.GroupVersionKind) *migration {
	GinkgoHelper()
	s := &migration{cluster: c, peer: peer, kinds: kinds, config: config}
	s.apply(ctx, peer+"-crds.yaml", peer+".yaml")
	if peer != "capsule" {
		s.applyWebhooks(ctx, askNoUsers)
	}
	return s
}

// applyWebhooks makes the peer's webhook configurations, after change has changed each webhook.
func (s *migration) applyWebhooks(ctx context.Context, change func(webhook map[string]any)) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", s.peer+"-webhooks.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(text), "---\n") {
		configuration := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &configuration.Object)).To(Succeed())
		for _, webhook := range configuration.Object["webhooks"].([]any) {
			change(webhook.(map[string]any))
		}
		Expect(s.Admin().Create(ctx, configuration)).To(Succeed())
	}
}

// askNoUsers gives the webhooks on users' objects a selector that matches none. No process serves these webhooks, but the cases write
// such objects while the peer is meant to run.
func askNoUsers(webhook map[string]any) {
	for _, rule := range webhook["rules"].([]any) {
		if group := rule.(map[string]any)["apiGroups"].([]any)[0]; group == "" || group == "rbac.authorization.k8s.io" {
			webhook["objectSelector"] = map[string]any{"matchLabels": map[string]any{"only.example.com/asked": "yes"}}
		}
	}
}

// taken expects each copy to be one of Warren's, in mode update, with nothing of the peer's on it.
func (s *migration) taken(ctx context.Context, domain string) {
	GinkgoHelper()
	state := s.state(ctx, "")
	for _, name := range s.copies {
		Expect(state[name]).NotTo(BeNil(), name)
		Expect(state[name].Labels).To(HaveKey(v1alpha1.LabelInheritedFrom), name)
		Expect(state[name].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSourceHash, HavePrefix("update:")), name)
		Expect(state[name].Labels).NotTo(Or(HaveKey(HavePrefix(domain)), HaveKey("app.kubernetes.io/managed-by")), name)
	}
}

// cleanUp runs the commands with which the guide removes the peer that runs in namespace, and expects nothing of it to be left.
func (s *migration) cleanUp(ctx context.Context, namespace string) {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "guides", "migrating.md"))
	Expect(err).NotTo(HaveOccurred())
	script := regexp.MustCompile("(?s)```\n([^`]*kubectl delete namespace " + namespace + "\n[^`]*)```").FindSubmatch(page)
	Expect(script).NotTo(BeNil())
	s.script(ctx, string(script[1]))
	s.isRid(ctx, build.Namespace(namespace))
	bindings, _, _ := s.Kubectl(ctx, controlplane.Admin, "get", "clusterrolebinding", "-o", "yaml")
	Expect(bindings).NotTo(ContainSubstring("namespace: " + namespace + "\n"))
	groups := map[string]string{"hnc-system": "hnc.x-k8s.io", "accurate": "accurate.cybozu.com", "capsule-system": "capsule.clastix.io"}
	Expect(groups).To(HaveKey(namespace))
	definitions, stderr, code := s.Kubectl(ctx, controlplane.Admin, "get", "crd", "-o", "name")
	Expect(code).To(BeZero(), stderr)
	Expect(definitions).NotTo(ContainSubstring(groups[namespace]))
}

// script runs commands as the cluster admin, and expects each to succeed.
func (c cluster) script(ctx context.Context, commands string) {
	GinkgoHelper()
	kubectl := devcluster.Kubectl{Path: c.KubectlPath, Plugins: c.Plugins, Home: filepath.Join(c.Dir, "home")}
	cmd := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", commands)
	cmd.Env = kubectl.Command(ctx, c.Kubeconfig(controlplane.Admin), controlplane.Admin).Env
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
