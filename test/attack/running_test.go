package attack_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// runningNamespaces are sub-namespaces of payments on the control plane called running, one for each case.
var runningNamespaces = []string{"pay-quota", "pay-jobs", "pay-ended", "pay-secret", "pay-stripped", "pay-roles"}

// forgedTemplates make pods, jobs and claims that carry one of our labels.
var forgedTemplates = []request{
	create("deployment pay-jobs/web", `{spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: `+forgedPod("web")+`}}`),
	create("statefulset pay-jobs/db", `{spec: {replicas: 1, selector: {matchLabels: {app: db}}, template: `+forgedPod("db")+`,
		volumeClaimTemplates: [{metadata: {name: data, labels: {$D/inherited-from: victim}},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`),
	create("cronjob pay-jobs/report", `{spec: {schedule: "* * * * *", jobTemplate: {metadata: {labels: {$D/inherited-from: victim}},
		spec: {template: {metadata: {labels: {$D/inherited-from: victim}}, spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}}`),
}

func forgedPod(app string) string {
	return `{metadata: {labels: {app: ` + app + `, $D/inherited-from: victim}}, spec: {containers: [{name: c, image: c}]}}`
}

var _ = Describe("with the operator running", func() {
	f := running

	It("SEC-P3 while the operator runs, a namespace with access objects and copies, some of mode create, that op or cl deletes is gone "+
		"within 20 s", func(ctx SpecContext) {
		f.given(ctx, clara, create("namespace pay-placed", ours("$D/parent", "payments")))
		for _, copied := range []string{"secret pay-placed/s", "configmap pay-placed/seed", "rolebinding pay-placed/warren:users"} {
			f.appears(ctx, copied)
		}
		f.given(ctx, clara, remove("namespace pay-placed"))
		f.given(ctx, alice, remove("subnamespace payments/pay-ended")) // the operator deletes its namespace
		f.gone(ctx, "namespace pay-placed")
		f.gone(ctx, "namespace pay-ended")
	})

	It("SEC-P4 a new managed namespace gets ServiceAccount default and ConfigMap kube-root-ca.crt; status.used of a copied ResourceQuota "+
		"counts the 100 ConfigMaps that are created, and all others", func(ctx SpecContext) {
		for _, target := range []string{"serviceaccount pay-quota/default", "configmap pay-quota/kube-root-ca.crt"} {
			f.appears(ctx, target)
		}
		for i := range 100 {
			f.given(ctx, alice, create("configmap pay-quota/c"+strconv.Itoa(i), `{data: {key: one}}`))
		}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			there, quota := &corev1.ConfigMapList{}, &corev1.ResourceQuota{}
			g.Expect(f.Admin().List(ctx, there, client.InNamespace("pay-quota"))).To(Succeed())
			g.Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: "pay-quota", Name: "quota"}, quota)).To(Succeed())
			g.Expect(len(there.Items)).To(BeNumerically(">=", 102))
			used := quota.Status.Used["count/configmaps"]
			g.Expect(used.Value()).To(BeEquivalentTo(len(there.Items)))
		}).Should(Succeed())
	})

	It("SEC-C12 what a Deployment, CronJob and StatefulSet generate from templates with our label is created and deleted; the operator "+
		"writes none of it, and pay-jobs can be deleted", func(ctx SpecContext) {
		mark, err := f.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		f.given(ctx, alice, forgedTemplates...)
		labelled := func(ctx context.Context, kind string) (int, error) {
			all := listOf(object(kind+" pay-jobs/*", ""))
			err := f.Admin().List(ctx, all, client.InNamespace("pay-jobs"), client.MatchingLabels{v1alpha1.LabelInheritedFrom: "victim"})
			return len(all.Items), err
		}
		for kind, count := range map[string]int{"replicaset": 1, "pod": 4, "persistentvolumeclaim": 1, "job": 1} {
			Eventually(ctx, labelled).WithArguments(kind).Should(BeNumerically(">=", count), kind)
		}
		f.given(ctx, alice, merge("deployment pay-jobs/web", `{spec: {replicas: 0}}`),
			remove("statefulset pay-jobs/db"), remove("cronjob pay-jobs/report"), sweep("persistentvolumeclaim pay-jobs/*"))
		for _, kind := range []string{"pod", "persistentvolumeclaim", "job"} {
			Eventually(ctx, labelled).WithArguments(kind).Should(BeZero(), kind)
		}
		writes, err := f.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		for _, write := range writes {
			Expect(write.URI).NotTo(MatchRegexp("/namespaces/pay-jobs/(pods|replicasets|jobs|persistentvolumeclaims)"))
		}
		f.given(ctx, admin, remove("subnamespace payments/pay-jobs"))
		f.gone(ctx, "namespace pay-jobs")
	})

	It("PROP-I13 after the Role's label propagate is none, the copy of its RoleBinding is deleted; beside a stronger Role of that name, "+
		"made by a sudoer, it is not created again", func(ctx SpecContext) {
		f.given(ctx, alice,
			create("role payments/releaser",
				`{metadata: {labels: {$D/propagate: update}, annotations: {$D/select: pay-roles.tree.$D/depth}}, rules: [{apiGroups: [""], `+
					`resources: [configmaps], verbs: [get]}]}`),
			create("rolebinding payments/releasers", `{metadata: {labels: {$D/propagate: update}, annotations: {$D/select: pay-roles.tree.$D/depth}},
				roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: releaser},
				subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}`))
		f.appears(ctx, "rolebinding pay-roles/releasers")
		f.given(ctx, alice, merge("role payments/releaser", ours("$D/propagate", "none")))
		f.gone(ctx, "rolebinding pay-roles/releasers")
		f.given(ctx, bob, create("role pay-roles/releaser", `{rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`))
		Consistently(ctx, func() error {
			return f.Admin().Get(ctx, client.ObjectKey{Namespace: "pay-roles", Name: "releasers"}, &rbacv1.RoleBinding{})
		}).WithTimeout(test.Quiet(10 * time.Second)).Should(MatchError(apierrors.IsNotFound, "is not found"))
	})

	It("PROP-L8 sources of a user that use up the limit of copies do not hold back a source in the root whose name begins with "+
		"warren-rail-", func(ctx SpecContext) {
		f.given(ctx, admin, create("lnamespace filled", `{spec: {users: [{kind: User, name: alice}], limits: {copies: 2}}}`))
		f.appears(ctx, "rolebinding filled/warren:users")
		f.given(ctx, alice, create("subnamespace filled/filled-web", ``),
			create("configmap filled/one", `{metadata: {labels: {$D/propagate: update}}}`),
			create("configmap filled/two", `{metadata: {labels: {$D/propagate: update}}}`))
		f.appears(ctx, "configmap filled-web/one")
		f.appears(ctx, "configmap filled-web/two")
		f.given(ctx, admin, create("resourcequota filled/warren-rail-pods",
			`{metadata: {labels: {$D/propagate: update}}, spec: {hard: {pods: "5"}}}`))
		f.appears(ctx, "resourcequota filled-web/warren-rail-pods")
		f.given(ctx, alice, create("configmap filled/three", `{metadata: {labels: {$D/propagate: update}}}`))
		f.withheld(ctx, "configmap filled-web/three")
	})

	It("SEC-X38 `kubectl warren access` prints valid JSON and YAML if a subject has a control character in its name", func(ctx SpecContext) {
		f.given(ctx, alice, create("rolebinding pay-roles/odd", binding("view", user("odd\u009bname"))))
		for _, format := range []string{"yaml", "json"} {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				out, problems, code := f.Kubectl(ctx, controlplane.Admin, "warren", "access", "payments", "-o", format)
				if code != 0 {
					return "", fmt.Errorf("status %d: %s", code, problems)
				}
				return out, nil
			}).Should(And(ContainSubstring("odd"), Not(ContainSubstring("\u009b"))), format)
		}
	})

	It("SEC-L6 with webhooks off, the operator does not set enforce=privileged of spec.labels of a SubNamespace; condition "+
		"MetadataSynced names the key", func(ctx SpecContext) {
		const level = "pod-security.kubernetes.io/enforce"
		f.given(ctx, alice, create("subnamespace payments/pay-privileged", `{spec: {labels: {`+level+`: privileged}}}`))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			sub := build.SubNamespace("payments", "pay-privileged")
			g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub)).To(Succeed())
			synced := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionMetadataSynced)
			g.Expect(synced).NotTo(BeNil())
			g.Expect(synced.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(synced.Message).To(ContainSubstring(level))
		}).Should(Succeed())
		namespace := &corev1.Namespace{}
		Expect(f.Admin().Get(ctx, client.ObjectKey{Name: "pay-privileged"}, namespace)).To(Succeed())
		Expect(namespace.Labels).NotTo(HaveKey(level))
	})

	It("SEC-W4 a MutatingAdmissionPolicy removes our labels from ConfigMaps: the cage refuses the copy, which no namespace gets, and "+
		"Propagated is Rejected; without its binding, the copy is written", func(ctx SpecContext) {
		strip := stripping("stripped")
		err := f.Admin().Create(ctx, strip)
		if meta.IsNoMatchError(err) {
			Skip("MutatingAdmissionPolicy is served from Kubernetes 1.36 on")
		}
		Expect(err).NotTo(HaveOccurred())
		bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: strip.Name},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: strip.Name},
		}
		Expect(f.Admin().Create(ctx, bound)).To(Succeed())
		rehearsed := create("configmap pay-stripped/stripped", ours("$D/inherited-from", "payments"))
		Eventually(ctx, func(ctx context.Context) error { return rehearsed.send(ctx, f.caller(op).rehearsing()) }).
			Should(MatchError(And(ContainSubstring("warren-operator-cage-objects"), ContainSubstring("carries its mark"))))

		f.given(ctx, alice, create("configmap payments/stripped", `{metadata: {labels: {$D/propagate: update}}, data: {key: one}}`))
		Eventually(ctx, f.eventsOf).WithArguments("payments", "stripped", v1alpha1.ReasonCopyRejected).ShouldNot(BeEmpty())
		Expect(f.look(ctx, "configmap pay-stripped/stripped")).To(BeNil())
		Eventually(ctx, f.propagated).WithArguments("pay-stripped").Should(Equal(string(v1alpha1.ReasonRejected)))
		Expect(f.Admin().Delete(ctx, bound)).To(Succeed())
		f.appears(ctx, "configmap pay-stripped/stripped")
		Eventually(ctx, f.propagated).WithArguments("pay-stripped").Should(Equal(string(v1alpha1.ReasonInSync)))
	})
})

// propagated returns the reason of condition Propagated of a namespace's HierarchyConfiguration.
func (f *fixture) propagated(ctx context.Context, namespace string) (string, error) {
	c, err := f.Reported(ctx, namespace, v1alpha1.ConditionPropagated)
	return c.Reason, err
}

// stripping returns a policy that removes the label inherited-from from ConfigMaps with this name.
func stripping(name string) *admissionregistrationv1.MutatingAdmissionPolicy {
	fail := admissionregistrationv1.Fail
	label := fmt.Sprintf("'%s' in object.metadata.?labels.orValue({})", v1alpha1.LabelInheritedFrom)
	return &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "strip-" + name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "of-that-name", Expression: fmt.Sprintf("object.metadata.name == '%s'", name)},
				{Name: "labelled", Expression: label},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(
					"[JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey('%s')}]", v1alpha1.LabelInheritedFrom)},
			}},
		},
	}
}

// eventsOf are the messages of the Events of that reason about an object.
func (f *fixture) eventsOf(ctx context.Context, namespace, name string, reason v1alpha1.Reason) ([]string, error) {
	events := &corev1.EventList{}
	err := f.Admin().List(ctx, events, client.InNamespace(namespace),
		client.MatchingFields{"involvedObject.name": name, "reason": string(reason)})
	var messages []string
	for _, event := range events.Items {
		messages = append(messages, event.Message)
	}
	return messages, err
}
