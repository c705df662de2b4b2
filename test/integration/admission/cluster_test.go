package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
	"github.com/warren-tenancy/warren/webhooks"
)

// cluster is a World with the words in which the cases are written.
type cluster struct{ words.Cluster }

// answer is what kubectl said.
type answer struct {
	Out, Err string
	Code     int
}

// kubectl runs kubectl as the cluster admin; --as makes it somebody else.
func (c cluster) kubectl(ctx context.Context, args ...string) answer {
	out, err, code := c.Kubectl(ctx, controlplane.Admin, args...)
	return answer{out, err, code}
}

// create makes an object with kubectl.
func (c cluster) create(ctx context.Context, object client.Object, args ...string) answer {
	return c.send(ctx, "create", object, args...)
}

// wish makes a HierarchyConfiguration with kubectl, or gives it another spec: the operator may have made it already.
func (c cluster) wish(ctx context.Context, hc *v1alpha1.HierarchyConfiguration, args ...string) answer {
	return c.send(ctx, "apply", hc, append([]string{"--server-side"}, args...)...)
}

// send gives an object to kubectl.
func (c cluster) send(ctx context.Context, verb string, object client.Object, args ...string) answer {
	GinkgoHelper()
	gvk, err := apiutil.GVKForObject(object, c.Admin().Scheme())
	Expect(err).NotTo(HaveOccurred())
	object = object.DeepCopyObject().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	data, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	var manifest map[string]any
	Expect(json.Unmarshal(data, &manifest)).To(Succeed())
	delete(manifest, "status")
	data, err = json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	out, problem, code := c.KubectlWith(ctx, controlplane.Admin, string(data), append([]string{verb, "-f", "-"}, args...)...)
	return answer{out, problem, code}
}

// label changes labels of a Namespace: key=value sets, key- removes. Keys are ours unless they have a domain.
func (c cluster) label(ctx context.Context, namespace string, edits ...string) answer {
	args := []string{"label", "namespace", namespace, "--overwrite"}
	for _, edit := range edits {
		if key, _, _ := strings.Cut(strings.TrimSuffix(edit, "-"), "="); !strings.Contains(key, "/") && key != "team" {
			edit = v1alpha1.Domain + "/" + edit
		}
		args = append(args, edit)
	}
	return c.kubectl(ctx, args...)
}

// refuse matches the answer to a refused request: kubectl failed, and stderr has all of words. A failed call of a webhook is no refusal.
func refuse(words ...string) types.GomegaMatcher {
	all := []types.GomegaMatcher{HaveField("Code", Not(Equal(0))), HaveField("Err", Not(ContainSubstring("failed calling webhook")))}
	for _, word := range words {
		all = append(all, HaveField("Err", ContainSubstring(word)))
	}
	return And(all...)
}

// allow matches the answer to a request that succeeded without any message on stderr.
func allow() types.GomegaMatcher {
	return And(HaveField("Code", 0), HaveField("Err", BeEmpty()))
}

// warn matches the answer to a request that succeeded with a Warning. All of words are on stderr.
func warn(words ...string) types.GomegaMatcher {
	all := []types.GomegaMatcher{HaveField("Code", 0), HaveField("Err", ContainSubstring("Warning: "))}
	for _, word := range words {
		all = append(all, HaveField("Err", ContainSubstring(word)))
	}
	return And(all...)
}

// tenant makes an LNamespace and waits for its root.
func (c cluster) tenant(ctx context.Context, lns *build.LNamespace) {
	GinkgoHelper()
	c.Create(ctx, lns.Object())
	Eventually(c.ns(lns.Name)).WithContext(ctx).Should(carry(v1alpha1.TreeLabel(lns.Name), "0"))
}

// grow creates SubNamespaces, each written as parent/name, and waits for each namespace before the next.
func (c cluster) grow(ctx context.Context, subs ...string) {
	GinkgoHelper()
	for _, text := range subs {
		parent, name, _ := strings.Cut(text, "/")
		c.Create(ctx, build.SubNamespace(parent, name))
		Eventually(c.ns(name)).WithContext(ctx).Should(carry(v1alpha1.TreeLabel(parent), "1"))
	}
}

// ns reads a Namespace, for Eventually.
func (c cluster) ns(name string) func(context.Context) (*corev1.Namespace, error) {
	return func(ctx context.Context) (*corev1.Namespace, error) {
		n := build.Namespace(name)
		return n, c.Admin().Get(ctx, client.ObjectKeyFromObject(n), n)
	}
}

// now is a Namespace as it stands.
func (c cluster) now(ctx context.Context, name string) *corev1.Namespace {
	GinkgoHelper()
	n, err := c.ns(name)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return n
}

// sub reads a SubNamespace.
func (c cluster) sub(parent, name string) func(context.Context) (*v1alpha1.SubNamespace, error) {
	return func(ctx context.Context) (*v1alpha1.SubNamespace, error) {
		sub := build.SubNamespace(parent, name)
		return sub, c.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub)
	}
}

// lns reads an LNamespace.
func (c cluster) lns(ctx context.Context, name string) *v1alpha1.LNamespace {
	GinkgoHelper()
	lns := build.Tenant(name).Object()
	Expect(c.Admin().Get(ctx, client.ObjectKeyFromObject(lns), lns)).To(Succeed())
	return lns
}

func carry(key, value string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Labels", HaveKeyWithValue(key, value))
}

func lack(key string) types.GomegaMatcher {
	return HaveField("ObjectMeta.Labels", Not(HaveKey(key)))
}

func active() types.GomegaMatcher { return HaveField("ObjectMeta.DeletionTimestamp", BeNil()) }

// ready is said of an object's condition Ready.
func ready(status metav1.ConditionStatus, reason v1alpha1.Reason) types.GomegaMatcher {
	return condition(v1alpha1.ConditionReady, status, reason)
}

// patches sends an LNamespace to the defaulting webhook, as the API server does, and returns the JSON patch.
func (c cluster) patches(ctx context.Context, user, object string) (string, error) {
	var lns map[string]any
	if err := json.Unmarshal([]byte(object), &lns); err != nil {
		return "", err
	}
	lns["apiVersion"], lns["kind"], lns["metadata"] = v1alpha1.GroupVersion.String(), "LNamespace", map[string]any{"name": "rehearsed"}
	raw, err := json.Marshal(lns)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create,
			Kind: metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "LNamespace"},
			Resource: metav1.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
				Resource: "lnamespaces"},
			UserInfo: authenticationv1.UserInfo{Username: user}, Object: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		return "", err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s", c.WebhookPort, webhooks.PathLNamespaceDefaults)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	anyone := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // this machine's own port
	response, err := anyone.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(response.Body).Decode(review); err != nil {
		return "", err
	}
	return string(review.Response.Patch), nil
}
