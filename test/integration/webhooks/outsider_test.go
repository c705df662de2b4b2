package webhooks_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("Whoever reaches the webhooks' port", func() {
	It("SEC-W5 alice posts forged AdmissionReviews herself: each is answered or refused, no object changes, and no answer holds another "+
		"tenant's data that the review does not hold; SEC-W30 a review of a kind that the path does not check, or without the UID of its "+
		"object, is refused; the answer names nothing that the review does not name; SEC-W36 a megabyte of YAML whose aliases make "+
		"gigabytes, and a body that never ends, are refused; the operator has used less than 500 MB of memory; SEC-W37 "+
		"status.serviceAccounts shows a digest, never the UID of a namespace; as the UID of a review in the name of cl it reveals nothing, "+
		"but the real UID would; SEC-W38 annotation parent-uid is a digest, and the parent's UID is nowhere on the namespace; as the "+
		"parent's UID in a review it reveals nothing", func(ctx SpecContext) {
		w := start(ctx, devcluster.Options{})
		f := furnish(ctx, w)
		const value = "of-dave-alone"
		Expect(w.Admin().Create(ctx, build.Tenant("victim").Users("dave").Object())).To(Succeed())
		Eventually(w.As("dave").Create).WithArguments(ctx, build.Secret("victim", "s", value)).Should(Succeed())
		Eventually(w.As("dave").Create).WithArguments(ctx, build.SubNamespace("victim", "victim-web")).Should(Succeed())
		Eventually(func(g Gomega) {
			namespace := build.Namespace("victim-web")
			g.Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			g.Expect(namespace.Labels).To(HaveKey(v1alpha1.TreeLabel("victim")))
			g.Expect(namespace.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationParentUID, Not(BeEmpty())))
		}).Should(Succeed())
		lister := build.Tenant("lister").Managers("alice").UserSubjects(build.ServiceAccount("victim", "robot")).Object()
		Expect(w.Admin().Create(ctx, lister)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(w.As("alice").Get(ctx, client.ObjectKeyFromObject(lister), lister)).To(Succeed())
			g.Expect(lister.Status.ServiceAccounts).To(ConsistOf(HaveField("NamespaceUID", Not(BeEmpty()))))
		}).Should(Succeed())
		mark := f.quiet(ctx)
		before := f.shape(ctx)

		outsider := &outsider{world: w, client: &http.Client{
			Timeout:   suite.Patience,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // like a client without the caBundle
		}}
		for _, r := range forged() {
			code, answer := outsider.post(ctx, r.path, r.review())
			Expect(code).To(BeNumerically("<", 500), "%s: %s", r.path, answer)
			for _, secret := range []string{value, "dave", "victim", "victim-web"} {
				if !strings.Contains(string(r.review()), secret) { // what the sender says is no secret
					Expect(answer).NotTo(ContainSubstring(secret), r.path)
				}
			}
		}
		for _, r := range strange() {
			code, answer := outsider.post(ctx, r.path, r.review())
			Expect(code).To(BeNumerically("<", 500), "%s: %s", r.path, answer)
			Expect(answer).To(ContainSubstring(`"allowed":false`), r.path)
			for _, name := range []string{"victim-web", "dave"} {
				if !strings.Contains(string(r.review()), name) {
					Expect(answer).NotTo(ContainSubstring(name), "SEC-W30 %s as %q", r.path, r.says)
				}
			}
		}
		for what, body := range map[string][]byte{
			"nothing": nil, "garbage": []byte("garbage"), "an empty review": []byte("{}"),
			"four mebibytes": append(bytes.Repeat([]byte(" "), 4<<20), forged()[0].review()...),
		} {
			code, answer := outsider.post(ctx, forged()[0].path, body)
			allowed := &admissionv1.AdmissionReview{}
			_ = json.Unmarshal([]byte(answer), allowed)
			Expect(code >= 400 || allowed.Response != nil && !allowed.Response.Allowed).To(BeTrue(), "%s: %d %s", what, code, answer)
		}

		outsider.learnsNoUID(ctx, lister)
		outsider.bombs(ctx)

		Consistently(func(g Gomega) {
			writes, err := w.Writes(ctx, mark)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(writes).To(BeEmpty())
		}).WithTimeout(test.Quiet(10 * time.Second)).Should(Succeed())
		Expect(f.shape(ctx)).To(Equal(before))
		Expect(w.Operator.Log()).NotTo(ContainSubstring(value))
	})
})

// outsider is alice, who calls the port of the webhooks herself, with her own token.
type outsider struct {
	world  *devcluster.World
	client *http.Client
}

func (o *outsider) post(ctx context.Context, path string, body []byte) (code int, answer string) {
	GinkgoHelper()
	return o.send(ctx, path, bytes.NewReader(body))
}

func (o *outsider) send(ctx context.Context, path string, body io.Reader) (code int, answer string) {
	GinkgoHelper()
	url := fmt.Sprintf("https://127.0.0.1:%d%s", o.world.WebhookPort, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+o.world.Config("alice").BearerToken)
	response, err := o.client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(text)
}

// learnsNoUID expects that neither an LNamespace nor a child shows the UID of another namespace. What they show instead proves nothing to
// the webhooks. The real UID would.
func (o *outsider) learnsNoUID(ctx context.Context, lister *v1alpha1.LNamespace) {
	GinkgoHelper()
	account := lister.Status.ServiceAccounts[0]
	listed := build.Namespace(account.Namespace)
	Expect(o.world.Admin().Get(ctx, client.ObjectKeyFromObject(listed), listed)).To(Succeed())
	child := build.Namespace("victim-web")
	Expect(o.world.Admin().Get(ctx, client.ObjectKeyFromObject(child), child)).To(Succeed())
	for _, object := range []client.Object{lister, child} {
		text, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring(string(listed.UID)), object.GetName())
	}
	deletion := func(uid types.UID) string {
		GinkgoHelper()
		root := build.Root(account.Namespace)
		root.UID = uid
		review := forgery{"/validate--v1-namespace", "Namespace", "namespaces", admissionv1.Delete, nil, root, ""}
		_, answer := o.post(ctx, review.path, review.review())
		Expect(answer).To(ContainSubstring(`"allowed":false`))
		return answer
	}
	Expect(deletion(account.NamespaceUID)).NotTo(ContainSubstring("victim-web"))
	Expect(deletion(types.UID(child.Annotations[v1alpha1.AnnotationParentUID]))).NotTo(ContainSubstring("victim-web"))
	Expect(deletion(listed.UID)).To(ContainSubstring("victim-web"), "a review that holds the UID is answered as the admin's would be")
}

// bombs sends a megabyte that would be many gigabytes if anybody took it for YAML, and a review that never arrives. The metric that it
// checks also counts memory that is free again.
func (o *outsider) bombs(ctx context.Context) {
	GinkgoHelper()
	aliases := "a: &a \"" + strings.Repeat("x", 1_000_000) + "\"\nb: [" + strings.Repeat("*a,", 10_000) + "*a]\n"
	for _, r := range forged() {
		_, answer := o.post(ctx, r.path, []byte(aliases))
		Expect(answer).To(And(ContainSubstring(`"allowed":false`), ContainSubstring("a review is a JSON object")), r.path)
	}
	never, sender := io.Pipe()
	defer func() { _ = sender.Close() }()
	go func() { _, _ = sender.Write([]byte("{")) }()
	_, answer := o.send(ctx, forged()[0].path, never)
	Expect(answer).To(ContainSubstring("timeout"), "of a body that never ends")
	metrics, err := o.world.Operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(metrics.Value("go_memstats_sys_bytes", nil)).To(BeNumerically("<", 500_000_000))
}

// forgery is a review that no API server sent.
type forgery struct {
	path, kind, resource string
	operation            admissionv1.Operation
	object, old          client.Object
	// says is the kind that the review claims to be about; if empty, it is kind.
	says string
}

// strange are reviews about strangers' namespaces, without their UID, which claim a kind that their path doesn't judge,
// or hold two objects.
func strange() []forgery {
	const namespaces, tenants, configurations = "/validate--v1-namespace", "/validate-tenancy-warren-dev-v1alpha1-lnamespace",
		"/validate-tenancy-warren-dev-v1alpha1-hierarchyconfiguration"
	known := build.Root("payments")
	return []forgery{
		{namespaces, "Namespace", "namespaces", admissionv1.Delete, nil, build.Root("victim"), "X"},
		{namespaces, "Namespace", "namespaces", admissionv1.Delete, nil, build.Root("victim"), ""},
		{namespaces, "Namespace", "namespaces", admissionv1.Update, build.Namespace("victim"), build.Root("victim"), "X"},
		{namespaces, "Namespace", "namespaces", admissionv1.Update, build.Namespace("victim"), known, ""},
		{tenants, "LNamespace", "lnamespaces", admissionv1.Delete, nil, build.Tenant("victim").Object(), "SubNamespace"},
		{
			configurations, "HierarchyConfiguration", "hierarchyconfigurations", admissionv1.Update,
			build.Hierarchy("victim", build.Below("payments")), build.Hierarchy("victim"), "",
		},
		{configurations, "HierarchyConfiguration", "hierarchyconfigurations", admissionv1.Create, build.Hierarchy("victim"), nil, "Y"},
	}
}

// forged are reviews in which the cluster admin seems to ask.
func forged() []forgery {
	hc := build.Hierarchy("payments", build.Below("victim"))
	return []forgery{
		{"/mutate-tenancy-warren-dev-v1alpha1-lnamespace", "LNamespace", "lnamespaces", admissionv1.Create, build.Tenant("shop").Object(), nil,
			""},
		{"/validate-tenancy-warren-dev-v1alpha1-lnamespace", "LNamespace", "lnamespaces", admissionv1.Create,
			build.Tenant("victim").Users("alice").Object(), nil, ""},
		{"/validate-tenancy-warren-dev-v1alpha1-lnamespace", "LNamespace", "lnamespaces", admissionv1.Delete, nil,
			build.Tenant("victim").Object(), ""},
		{"/validate-tenancy-warren-dev-v1alpha1-subnamespace", "SubNamespace", "subnamespaces", admissionv1.Create,
			build.SubNamespace("payments", "pay-forged"), nil, ""},
		{"/validate-tenancy-warren-dev-v1alpha1-subnamespace", "SubNamespace", "subnamespaces", admissionv1.Delete, nil,
			build.SubNamespace("victim", "victim-web"), ""},
		{"/validate-tenancy-warren-dev-v1alpha1-hierarchyconfiguration", "HierarchyConfiguration", "hierarchyconfigurations",
			admissionv1.Create, hc, nil, ""},
		{"/validate--v1-namespace", "Namespace", "namespaces", admissionv1.Create, build.Child("pay-forged", "victim"), nil, ""},
		{"/validate--v1-namespace", "Namespace", "namespaces", admissionv1.Delete, nil, build.Child("pay-web", "payments"), ""},
	}
}

// review is the forgery as the API server would send it.
func (f forgery) review() []byte {
	GinkgoHelper()
	gv := v1alpha1.GroupVersion
	if f.kind == "Namespace" {
		gv.Group, gv.Version = "", "v1"
	}
	request := &admissionv1.AdmissionRequest{
		UID: "forged", Operation: f.operation,
		Kind:     metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: cmp.Or(f.says, f.kind)},
		Resource: metav1.GroupVersionResource{Group: gv.Group, Version: gv.Version, Resource: f.resource},
		UserInfo: authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}},
	}
	for object, into := range map[client.Object]*runtime.RawExtension{f.object: &request.Object, f.old: &request.OldObject} {
		if object == nil {
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(gv.WithKind(f.kind))
		request.Name, request.Namespace = object.GetName(), object.GetNamespace()
		text, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		into.Raw = text
	}
	text, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	Expect(err).NotTo(HaveOccurred())
	return text
}
