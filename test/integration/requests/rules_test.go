package requests_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("what may be written", func() {
	It("REQ-V1 refuses durations, reasons and lists that the schema forbids", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		for rule, edit := range map[string]func(*v1alpha1.SudoRequestSpec){
			"duration is between 1m and 24h, such as 1h30m":  func(s *v1alpha1.SudoRequestSpec) { s.Duration = "25h" },
			"duration is between 1m and 24h, such as  1h30m": func(s *v1alpha1.SudoRequestSpec) { s.Duration = "30s" },
			"duration is between 1m and 24h,":                func(s *v1alpha1.SudoRequestSpec) { s.Duration = "1x" },
			"at least 8 chars":                               func(s *v1alpha1.SudoRequestSpec) { s.Reason = "restore" },
			"one line without control characters":            func(s *v1alpha1.SudoRequestSpec) { s.Reason = "restore\nthe ledger" },
		} {
			r := request(t.root, "carol")
			edit(&r.Spec)
			Expect(t.As("carol").Create(ctx, r)).To(beRefused(strings.ReplaceAll(rule, "  ", " ")), rule)
		}
		lns := build.Tenant(unique("pay")).Sudoers("bob").Object()
		lns.Spec.Limits = &v1alpha1.Limits{Sudoers: new(int32(0))}
		Expect(t.Admin().Create(ctx, lns)).To(beRefused("more sudoers than spec.limits.sudoers allows"))
		lns = build.Tenant(unique("pay")).Object()
		lns.Spec.SudoRequests = &v1alpha1.SudoRequests{Eligible: []v1alpha1.Subject{build.ServiceAccount("ci", "deployer")}}
		Expect(t.Admin().Create(ctx, lns)).To(beRefused("eligible and approvers are Users and Groups"))
		lns = build.Tenant(unique("pay")).UserSubjects(build.ServiceAccount("warren-sudo", "x")).Object()
		Expect(t.Admin().Create(ctx, lns)).To(beRefused("service accounts of warren-sudo can't be listed"))
	})

	It("REQ-V2 refuses a change of what was asked and decided", func(ctx SpecContext) {
		t := plant(ctx, world.World, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.Approvals = 2 })
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		for patch, rule := range map[string]string{
			`{"spec":{"duration":"20m"}}`:          "a request can't be changed; end it and make another",
			`{"spec":{"reason":"something else"}}`: "a request can't be changed",
			`{"spec":{"group":"pay-oncall"}}`:      "a request can't be changed",
			`{"spec":{"breakGlass":true}}`:         "a request can't be changed",
			`{"spec":{"decisions":[]}}`:            "a decision can't be changed or taken back; add another",
			`{"spec":{"decisions":[{"user":"mia","verdict":"Approve","comment":"late"}]}}`: "a decision can't be changed",
		} {
			err := t.As("mia").Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
			Expect(err).To(beRefused(rule), patch)
		}
		Expect(t.decide(ctx, r, "mia", v1alpha1.SudoApprove)).To(beRefused("Duplicate value"))
	})

	It("REQ-S1 refuses a request in another name, with decisions, or outside of a root", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		t.Create(ctx, build.SubNamespace(t.root, t.root+"-web"))
		t.Exists(ctx, build.Namespace(t.root+"-web"))
		carol := t.As("carol")
		Eventually(ctx, func() error { return carol.List(ctx, &v1alpha1.SudoRequestList{}, client.InNamespace(t.root)) }).Should(Succeed())
		other, group, decided := request(t.root, "otto"), request(t.root, "carol"), request(t.root, "carol")
		group.Spec.Group = "pay-oncall"
		decided.Spec.Decisions = []v1alpha1.SudoDecision{{User: "carol", Verdict: v1alpha1.SudoEnd}}
		for _, r := range []*v1alpha1.SudoRequest{other, group, decided} {
			Expect(t.As("carol").Create(ctx, r)).To(beRefused("spec.user and spec.group are who you are, and a new request has no decisions"))
		}
		Expect(t.As("carol").Create(ctx, request(t.root+"-web", "carol"))).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(t.Admin().Create(ctx, request(t.root+"-web", "admin"))).To(beRefused("a SudoRequest lies in the root of a tenant"))
		mine := request(t.root, "otto")
		mine.Spec.Group = "pay-oncall"
		Expect(t.As("otto").Create(ctx, mine)).To(Succeed())
	})

	It("REQ-S2 refuses a decision on one's own request, and one in another name", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.ask(ctx, "10m")
		decision := func(user, group string, verdict v1alpha1.SudoVerdict) v1alpha1.SudoDecision {
			return v1alpha1.SudoDecision{User: user, Group: group, Verdict: verdict}
		}
		const bears = "a decision bears the name of whoever makes it"
		Expect(t.add(ctx, t.As("carol"), r, decision("carol", "", v1alpha1.SudoApprove))).To(beRefused("nobody decides on his own request"))
		Expect(t.add(ctx, t.As("carol"), r, decision("mia", "", v1alpha1.SudoEnd))).To(beRefused(bears))
		Expect(t.add(ctx, t.As("mia"), r, decision("lea", "", v1alpha1.SudoApprove))).To(beRefused(bears))
		Expect(t.add(ctx, t.As("mia"), r, decision("mia", "pay-leads", v1alpha1.SudoApprove))).To(beRefused(bears))
	})

	It("REQ-S3 refuses requests and decisions with sudo and of service accounts", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.ask(ctx, "10m")
		bob := t.Sudo("bob", t.root)
		Eventually(ctx, func() error { return bob.Create(ctx, request(t.root, "bob")) }).Should(beRefused("ask and decide as yourself"))
		Expect(t.add(ctx, bob, r, v1alpha1.SudoDecision{User: "bob", Verdict: v1alpha1.SudoApprove})).To(beRefused("ask and decide as yourself"))
		operator := t.As(controlplane.Operator)
		Expect(operator.Create(ctx, request(t.root, controlplane.Operator))).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(t.add(ctx, operator, r, v1alpha1.SudoDecision{User: "mia", Verdict: v1alpha1.SudoApprove})).To(
			MatchError(apierrors.IsForbidden, "is a 403"))
	})

	It("REQ-S4 keeps requests from sudoers: no deletion, status, owner or finalizer", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r, bob := t.ask(ctx, "10m"), t.Sudo("bob", t.root)
		Eventually(ctx, func() error { return bob.Delete(ctx, r.DeepCopy()) }).Should(beRefused("SudoRequests are kept as a record"))
		Expect(bob.DeleteAllOf(ctx, &v1alpha1.SudoRequest{}, client.InNamespace(t.root))).To(beRefused("SudoRequests are kept as a record"))
		status := []byte(`{"status":{"conditions":[]}}`)
		Expect(bob.Status().Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, status))).To(
			beRefused("the status of a SudoRequest is the operator's"))
		for _, patch := range []string{
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"00000000-0000-0000-0000-000000000000"}]}}`,
			`{"metadata":{"finalizers":["example.com/x"]}}`,
		} {
			for who, as := range map[string]client.Client{"bob": bob, "mia": t.As("mia")} {
				err := as.Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
				Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"), "%s: %s", who, patch)
			}
		}
		Expect(t.read(ctx, r).UID).To(Equal(r.UID))
	})

	It("REQ-S6 lets the temporary sudoer write nothing that outlives the time", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "10m")
		as := t.temporary("carol")
		const ends = "sudo on request ends with its time"
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.root, Name: "ci"}}
		Expect(as.Create(ctx, account)).To(Succeed())
		Expect(as.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: t.root, Name: "x"}})).To(beRefused(ends))
		Expect(as.Create(ctx, build.RoleBinding(t.root, "x", "admin", build.RBACUser("carol")))).To(beRefused(ends))
		Expect(as.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})).To(beRefused(ends))
		token := build.Secret(t.root, "token", "x")
		token.Type, token.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "ci"}
		Expect(as.Create(ctx, token)).To(beRefused(ends))
		shape := &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: t.root, Name: "hierarchy"}}
		Expect(as.Create(ctx, shape)).To(beRefused(ends))
		Expect(as.Create(ctx, request(t.root, v1alpha1.TemporarySudoer(t.root)))).To(beRefused("ask and decide as yourself"))
		Expect(as.Get(ctx, client.ObjectKey{Name: t.root}, &v1alpha1.LNamespace{})).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(as.Create(ctx, build.Secret(t.root, "other", "x"))).To(Succeed())
		Expect(as.Create(ctx, build.SubNamespace(t.root, t.root+"-new"))).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-S7 gives the temporary sudoer nothing outside of the tree, and the requester no other one", func(ctx SpecContext) {
		t, shop := plant(ctx, world.World, nil), plant(ctx, world.World, nil)
		t.granted(ctx, "10m")
		for _, namespace := range []string{shop.root, "default", v1alpha1.SudoNamespace} {
			err := t.temporary("carol").List(ctx, &corev1.SecretList{}, client.InNamespace(namespace))
			Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
		}
		Expect(t.temporary("carol").List(ctx, &corev1.NodeList{})).To(MatchError(apierrors.IsForbidden, "is a 403"))
		for _, as := range []client.Client{
			shop.temporary("carol"), t.temporary("carol", "system:masters"), t.temporary("eve"), t.temporary("alice"),
		} {
			Expect(as.List(ctx, &corev1.SecretList{}, client.InNamespace(t.root))).To(MatchError(apierrors.IsForbidden, "is a 403"))
		}
	})

	It("REQ-S9 keeps the operator's token to timers, and to the right of one user while one runs", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		operator := t.As(controlplane.Operator)
		lns := &v1alpha1.LNamespace{}
		Expect(t.Admin().Get(ctx, client.ObjectKey{Name: t.root}, lns)).To(Succeed())
		number := 0
		fresh := func() *v1alpha1.SudoRequest {
			number++
			r := request(t.root, "carol")
			r.UID = types.UID(fmt.Sprintf("%s-%d", t.root, number))
			return r
		}
		const refused = "in warren-sudo the operator makes timers"
		refuse := func(object client.Object, why string) {
			GinkgoHelper()
			Expect(operator.Create(ctx, object)).To(beRefused(why))
		}
		timer := func(edit func(*batchv1.Job)) *batchv1.Job {
			job := sudo.BuildTimer(fresh(), lns, 600e9)
			edit(job)
			return job
		}
		good := timer(func(*batchv1.Job) {})
		Expect(operator.Create(ctx, good)).To(Succeed())
		refuse(timer(func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32(2 * 86400)) }), refused)
		refuse(timer(func(j *batchv1.Job) { j.Spec.Completions = new(int32(1)) }), refused)
		refuse(timer(func(j *batchv1.Job) { j.Labels = nil }), "")
		refuse(timer(func(j *batchv1.Job) { j.Namespace = t.root }), "")
		longer := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ttlSecondsAfterFinished":7200}}`))
		Expect(operator.Patch(ctx, good.DeepCopy(), longer)).To(MatchError(apierrors.IsForbidden, "is a 403"))
		r := fresh()
		r.UID = types.UID(good.Name)
		role := func(edit func(*rbacv1.Role)) *rbacv1.Role {
			one := sudo.BuildRole(r, good)
			edit(one)
			return one
		}
		refuse(role(func(o *rbacv1.Role) { o.Rules[0].ResourceNames = append(o.Rules[0].ResourceNames, "shop") }), refused)
		refuse(role(func(o *rbacv1.Role) { o.Rules[0].Resources = []string{"users"} }), refused)
		refuse(role(func(o *rbacv1.Role) { o.OwnerReferences = nil }), refused)
		binding := func(edit func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
			one := sudo.BuildBinding(r, good)
			edit(one)
			return one
		}
		refuse(binding(func(o *rbacv1.RoleBinding) { o.Subjects = []rbacv1.Subject{build.RBACGroup("pay-devs")} }), refused)
		refuse(binding(func(o *rbacv1.RoleBinding) { o.Subjects = []rbacv1.Subject{build.RBACUser("system:admin")} }), refused)
		refuse(binding(func(o *rbacv1.RoleBinding) { o.RoleRef.Kind, o.RoleRef.Name = "ClusterRole", "admin" }), refused)
		refuse(binding(func(o *rbacv1.RoleBinding) { o.OwnerReferences = nil }), refused)
		refuse(build.Secret(v1alpha1.SudoNamespace, unique("x"), "x"), "")
		t.Gone(ctx, good) // the operator ends a timer that no request has
	})
})
