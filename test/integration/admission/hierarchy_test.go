package admission_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// grant is a right that a row of the page requires, and the words of the refusal without it.
type grant struct {
	role, namespace, needs string
}

// adm is authority over a namespace; role is the part that the namespace has in the move.
func adm(namespace, role string) grant {
	return grant{"adm", namespace, fmt.Sprintf("needs update on hierarchyconfigurations in namespace %q (%s)", namespace, role)}
}

// cl is the right to update all namespaces.
func cl(why string) grant {
	return grant{"cl", "", "needs update on namespaces cluster-wide (" + why + ")"}
}

var (
	proposed = func(n string) grant { return adm(n, "proposed parent") }
	rooted   = func(n string) grant { return adm(n, "root of the current tree") }
	common   = func(n string) grant { return adm(n, "most recent common ancestor") }
	member   = func(n string) grant { return adm(n, "member of the cycle") }
)

// whole is every right in a namespace that joins another tree. changing is the right to change the tenant that a namespace leaves.
func whole(namespace string) grant {
	return grant{"whole", namespace, fmt.Sprintf("needs every right in namespace %q (it joins another tree), or a cluster admin's mark",
		namespace)}
}

func changing(tenant, namespace string) grant {
	return grant{"change-" + tenant, "", fmt.Sprintf("needs update on LNamespace %q (namespace %q leaves tenant %s)", tenant,
		namespace, tenant)}
}

// missing are the two rights that a proposed parent needs that does not exist.
func missing(namespace string) []grant {
	return []grant{
		{"hierarchy-maker", "", fmt.Sprintf("needs update on hierarchyconfigurations in namespace %q (proposed parent)", namespace)},
		{"namespace-maker", "", "needs create on namespaces cluster-wide (proposed parent)"},
	}
}

// move is one move of a row: of x below target.
type move struct {
	x, target string
	asks      []grant
	warning   string
}

// clusterRoles are the ClusterRoles to which let binds users.
func clusterRoles() []client.Object {
	author := build.Rule(v1alpha1.Domain, "hierarchyconfigurations", "get", "create", "update", "patch")
	administer := build.Rule(v1alpha1.Domain, "hierarchyconfigurations", "update")
	administer.ResourceNames = []string{v1alpha1.HierarchyConfigurationName}
	change := build.Rule(v1alpha1.Domain, "lnamespaces", "update")
	change.ResourceNames = []string{"payments"}
	return []client.Object{
		build.ClusterRole("whole", build.Rule("*", "*", "*")), build.ClusterRole("change-payments", change),
		build.ClusterRole("author", author), build.ClusterRole("adm", administer),
		build.ClusterRole("cl", build.Rule("", "namespaces", "update")),
		build.ClusterRole("namespace-maker", build.Rule("", "namespaces", "create")),
		build.ClusterRole("hierarchy-maker", build.Rule(v1alpha1.Domain, "hierarchyconfigurations", "create")),
	}
}

// let binds a user to a ClusterRole in a namespace, or in the whole cluster if namespace is empty.
func (c cluster) let(ctx context.Context, user, role, namespace string) {
	GinkgoHelper()
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	if namespace == "" {
		c.Create(ctx, build.ClusterRoleBinding(user+"-"+role, role, subject))
		return
	}
	c.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{subject},
	})
}

// judged tries each move by a user with exactly the rights that it asks for, and again without each one of them. Every try is a dry run,
// so that the fixture stays as it is.
func judged(ctx SpecContext, row string, moves ...move) {
	GinkgoHelper()
	for i, m := range moves {
		for without := range len(m.asks) + 1 {
			user := fmt.Sprintf("%s-%d-without-%d", strings.ToLower(row), i, without)
			shared.let(ctx, user, "author", m.x)
			for j, g := range m.asks {
				if j != without {
					shared.let(ctx, user, g.role, g.namespace)
				}
			}
			request := build.Hierarchy(m.x, build.Below(m.target))
			said := Eventually(shared.wish).WithArguments(ctx, request, "--as="+user, "--dry-run=server")
			switch {
			case without < len(m.asks):
				move := fmt.Sprintf("may not move namespace %q: ", m.x)
				said.Should(refuse("forbidden", fmt.Sprintf("user %q ", user), move+m.asks[without].needs), "%+v without %d", m, without)
			case m.warning != "":
				said.Should(warn(m.warning), "%+v", m)
			default:
				said.Should(allow(), "%+v", m)
			}
		}
	}
}

// unlawful checks that a move is refused to cluster admins, too.
func unlawful(ctx SpecContext, x, target string, words ...string) {
	GinkgoHelper()
	Eventually(shared.wish).WithArguments(ctx, build.Hierarchy(x, build.Below(target))).
		Should(refuse(append(words, "is invalid: spec.parent")...))
}

var _ = Describe("a HierarchyConfiguration", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		shared.Create(ctx, build.Root("org"), build.Child("team-a", "org"), build.Child("svc-1", "team-a"), build.Child("job", "svc-1"),
			build.Child("team-b", "org"), build.Root("other"), build.Child("lab", "other"), build.Namespace("solo"), build.Child("hut", "solo"))
		shared.tenant(ctx, build.Tenant("payments"))
		shared.Create(ctx, build.Child("pay-x", "payments"), build.Child("pay-y", "pay-x"))
		shared.tenant(ctx, build.Tenant("shop"))
		// The right to create a HierarchyConfiguration is as good as the right to update it only where none exists.
		for _, namespace := range []string{"org", "payments"} {
			Expect(shared.wish(ctx, build.Hierarchy(namespace))).To(allow())
		}
		for name, tree := range map[string]string{"job": "org", "team-b": "org", "lab": "other", "pay-y": "payments"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(HaveField("ObjectMeta.Labels", HaveKey(v1alpha1.TreeLabel(tree))))
		}
	})
	It("HIER-M02 a move of plain solo below org needs adm(org) and all(solo)", func(ctx SpecContext) {
		judged(ctx, "M02", move{x: "solo", target: "org", asks: []grant{proposed("org"), whole("solo")}})
	})
	It("HIER-M04 to make svc-1 a root needs adm(org), the root of its tree", func(ctx SpecContext) {
		judged(ctx, "M04", move{x: "svc-1", target: "", asks: []grant{rooted("org")}})
	})
	It("HIER-M05 a move of pay-x out of its tenant, to be a root, needs adm(payments) and cl; one below team-a needs adm(team-a) "+
		"too; HIER-M25 a move of pay-x to tenant shop needs change(payments), adm(shop) and all(pay-x); a sudoer of payments who is "+
		"a user of shop has these, a user of both not", func(ctx SpecContext) {
		leaves := []grant{rooted("payments"), cl(`namespace "pay-x" leaves tenant payments`)}
		judged(ctx, "M05", move{x: "pay-x", target: "", asks: leaves},
			move{x: "pay-x", target: "team-a", asks: append(leaves[:2:2], proposed("team-a"))},
			move{x: "pay-x", target: "shop", asks: []grant{changing("payments", "pay-x"), proposed("shop"), whole("pay-x")}})
		// A user of both tenants is admin in all their namespaces, and yet may not move one out. A sudoer of the first who is a user of the
		// second may.
		shared.tenant(ctx, build.Tenant("m25-a").Users("alice", "dave").Sudoers("dave"))
		shared.tenant(ctx, build.Tenant("m25-b").Users("alice", "dave"))
		shared.Create(ctx, build.Child("m25-x", "m25-a"))
		shared.Exists(ctx, build.RoleBinding("m25-x", "warren:sudoers", "cluster-admin"))
		leave := func(as ...string) answer {
			return shared.wish(ctx, build.Hierarchy("m25-x", build.Below("m25-b")), append(as, "--dry-run=server")...)
		}
		Eventually(leave).WithArguments("--as=alice").
			Should(refuse(`user "alice" may`, `needs update on LNamespace "m25-a" (namespace "m25-x" leaves tenant m25-a)`))
		Eventually(leave).WithArguments("--as=dave", "--as-group=m25-a-sudoers").Should(allow())
	})
	It("HIER-M26 eve, who is admin in plain legacy, places it below her tenant only with the LNamespace's UID as mark, which is "+
		"then removed; marks true and alice are refused", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("m26-eves").Users("eve").Sudoers("eve"))
		uid := string(shared.lns(ctx, "m26-eves").UID)
		shared.Create(ctx, build.Namespace("m26-legacy"), build.Namespace("m26-marked"))
		for _, namespace := range []string{"m26-legacy", "m26-marked"} {
			shared.let(ctx, "eve", "admin", namespace)
		}
		join := func(namespace string) answer {
			return shared.wish(ctx, build.Hierarchy(namespace, build.Below("m26-eves")), "--as=eve", "--dry-run=server")
		}
		mark := func(who string) {
			Expect(shared.kubectl(ctx, "annotate", "--overwrite", "namespace", "m26-marked", v1alpha1.AnnotationAdopt+"="+who)).
				To(HaveField("Code", 0))
		}
		Eventually(join).WithArguments("m26-legacy").Should(refuse(whole("m26-legacy").needs), "an admin would become cluster-admin")
		mark("true")
		Eventually(join).WithArguments("m26-marked").Should(refuse(whole("m26-marked").needs), "true names nobody")
		mark("alice")
		Eventually(join).WithArguments("m26-marked").
			Should(refuse("annotation tenancy.warren.dev/adopt of namespace m26-marked does not name the tree of"))
		mark(uid)
		Eventually(join).WithArguments("m26-marked").Should(allow())
		Expect(shared.wish(ctx, build.Hierarchy("m26-marked", build.Below("m26-eves")), "--as=eve")).To(allow())
		Eventually(shared.ns("m26-marked")).WithContext(ctx).Should(And(carry(v1alpha1.TreeLabel("m26-eves"), "1"),
			HaveField("ObjectMeta.Annotations", Not(HaveKey(v1alpha1.AnnotationAdopt)))), "a mark counts once")
	})
	It("HIER-M27 if another tenant, or a plain namespace, takes the name of x's deleted parent, x remains its old tenant's: "+
		"alice, user of both, may move it back, not away", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("m27-a").Users("alice"))
		shared.tenant(ctx, build.Tenant("m27-b").Users("alice"))
		shared.grow(ctx, "m27-a/m27-mid", "m27-a/m27-den")
		for x, parent := range map[string]string{"m27-x": "m27-mid", "m27-y": "m27-den"} {
			shared.Create(ctx, build.Child(x, parent))
			shared.Exists(ctx, build.RoleBinding(x, "warren:users", "admin"))
			Eventually(shared.kubectl).WithArguments(ctx, "delete", "subnamespace", parent, "-n", "m27-a", "--as=alice").
				Should(HaveField("Code", 0), "a warning tells of %s", x)
			Eventually(func() error { _, err := shared.ns(parent)(ctx); return err }).WithContext(ctx).
				Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}
		staysWithItsTenant := func(x string) {
			move := func(parent string) answer {
				return shared.wish(ctx, build.Hierarchy(x, build.Below(parent)), "--as=alice", "--dry-run=server")
			}
			Eventually(move).WithArguments("m27-b").Should(refuse(changing("m27-a", x).needs))
			Eventually(move).WithArguments("m27-a").Should(allow(), "home again")
		}
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("m27-b", "m27-mid"), "--as=alice").Should(allow())
		Eventually(shared.ns("m27-mid")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("m27-b"), "1"))
		staysWithItsTenant("m27-x")

		By("a plain namespace takes the name")
		shared.Create(ctx, build.Namespace("m27-den"))
		shared.let(ctx, "alice", "adm", "m27-den")
		staysWithItsTenant("m27-y")
	})
	It("HIER-M06 to make plain solo a root, which begins a tree, needs cl", func(ctx SpecContext) {
		judged(ctx, "M06", move{x: "solo", target: "", asks: []grant{cl(`namespace "solo" starts a new tree`)}})
	})
	It("HIER-M07 a move within a tree needs only adm of the nearest common ancestor of both parents, or one of them", func(ctx SpecContext) {
		judged(ctx, "M07", move{x: "svc-1", target: "team-b", asks: []grant{common("org")}},
			move{x: "svc-1", target: "org", asks: []grant{common("org")}}, move{x: "team-b", target: "team-a", asks: []grant{common("org")}})
	})
	It("HIER-M08 a move of job from svc-1 up to team-a needs adm(team-a), not adm(org)", func(ctx SpecContext) {
		judged(ctx, "M08", move{x: "job", target: "team-a", asks: []grant{common("team-a")}})
	})
	It("HIER-M09 a move of svc-1 from tree org below lab needs adm(org), adm(lab) and all(svc-1); adm(other) does not replace "+
		"adm(lab), nor adm(team-a) adm(org)", func(ctx SpecContext) {
		judged(ctx, "M09", move{x: "svc-1", target: "lab", asks: []grant{rooted("org"), proposed("lab"), whole("svc-1")}})
		shared.let(ctx, "m09-beside", "author", "svc-1")
		for _, namespace := range []string{"org", "other"} {
			shared.let(ctx, "m09-beside", "adm", namespace)
		}
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("svc-1", build.Below("lab")), "--as=m09-beside").
			Should(refuse(proposed("lab").needs))
		shared.let(ctx, "m09-below", "author", "svc-1")
		for _, namespace := range []string{"team-a", "lab"} {
			shared.let(ctx, "m09-below", "adm", namespace)
		}
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("svc-1", build.Below("lab")), "--as=m09-below").
			Should(refuse(rooted("org").needs))
	})
	It("HIER-M10 a move below plain solo needs adm(org), adm(solo) and all(svc-1), and has a Warning; then one below lab needs "+
		"adm(solo), adm(lab) and all(svc-1)", func(ctx SpecContext) {
		judged(ctx, "M10", move{x: "svc-1", target: "solo", asks: []grant{rooted("org"), proposed("solo"), whole("svc-1")},
			warning: "solo is not a root or a sub-namespace yet"},
			move{x: "hut", target: "lab", asks: []grant{rooted("solo"), proposed("lab"), whole("hut")}})
		shared.Create(ctx, build.Child("m10-svc", "org"), build.Namespace("m10-solo"))
		Eventually(shared.ns("m10-svc")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("org"), "1"))
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("m10-svc", build.Below("m10-solo"))).Should(allow())
		Eventually(shared.ns("m10-svc")).WithContext(ctx).Should(carry(v1alpha1.LabelParent, "m10-solo"))
		judged(ctx, "M10-later", move{x: "m10-svc", target: "lab", asks: []grant{rooted("m10-solo"), proposed("lab"), whole("m10-svc")}})
	})
	It("HIER-M11 a move below nosuch, which is missing, needs adm of x's root too, and warns; a refusal hides that", func(ctx SpecContext) {
		const warning = "parent namespace nosuch does not exist"
		judged(ctx, "M11", move{x: "solo", target: "nosuch", asks: append(missing("nosuch"), whole("solo")), warning: warning},
			move{x: "svc-1", target: "nosuch", asks: append(append([]grant{rooted("org")}, missing("nosuch")...), whole("svc-1")), warning: warning})
	})
	It("HIER-M12 if the parent of x was deleted, x needs adm of the root in its ancestry, and cl to leave a tenant; without that "+
		"root, it moves like plain solo", func(ctx SpecContext) {
		shared.Create(ctx, build.Child("m12-gone", "org"), build.Child("m12-x", "m12-gone"), build.Root("m12-r"),
			build.Child("m12-lost", "m12-r"), build.Child("m12-y", "m12-lost"), build.Child("m12-pay", "payments"), build.Child("m12-z", "m12-pay"))
		for name, tree := range map[string]string{"m12-x": "org", "m12-y": "m12-r", "m12-z": "payments"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry(v1alpha1.TreeLabel(tree), "2"))
		}
		for _, name := range []string{"m12-gone", "m12-lost", "m12-r", "m12-pay"} {
			Expect(shared.Admin().Delete(ctx, build.Namespace(name))).To(Succeed())
		}
		for _, name := range []string{"m12-gone", "m12-lost", "m12-r", "m12-pay"} {
			shared.Gone(ctx, build.Namespace(name))
		}
		judged(ctx, "M12", move{x: "m12-x", target: "", asks: []grant{rooted("org")}},
			move{x: "m12-x", target: "org", asks: []grant{rooted("org")}},
			move{x: "m12-z", target: "", asks: []grant{rooted("payments"), cl(`namespace "m12-z" leaves tenant payments`)}},
			move{x: "m12-y", target: "", asks: []grant{cl(`namespace "m12-y" starts a new tree`)}},
			move{x: "m12-y", target: "org", asks: []grant{proposed("org"), whole("m12-y")}})
	})
	It("HIER-M14 a move of a namespace below a halted ancestor is refused with the ancestor's name, but allowed with cl; "+
		"HIER-M15 a move of x out of a cycle needs adm of all other members, and below lab also adm(lab) and all(x)", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("m15-r"), build.Child("m15-x", "m15-r"), build.Child("m15-y", "m15-r"), build.Child("m15-z", "m15-x"),
			build.Child("m15-w", "m15-z"))
		Eventually(shared.ns("m15-w")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("m15-r"), "3"))
		// Only the operator can close a cycle here: the webhooks don't check its requests. So the case writes as the operator, as if no webhook
		// ran.
		for name, parent := range map[string]string{"m15-y": "m15-z", "m15-x": "m15-y"} {
			n := shared.now(ctx, name)
			before := n.DeepCopy()
			n.Labels[v1alpha1.LabelParent] = parent
			Expect(shared.As(controlplane.Operator).Patch(ctx, n, client.MergeFrom(before))).To(Succeed())
		}
		judged(ctx, "M15", move{x: "m15-x", target: "", asks: []grant{member("m15-y"), member("m15-z")}},
			move{x: "m15-x", target: "lab", asks: []grant{member("m15-y"), member("m15-z"), proposed("lab"), whole("m15-x")}})
		shared.let(ctx, "m14-user", "author", "m15-w")
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("m15-w", build.Below("org")), "--as=m14-user").
			Should(refuse("is invalid: spec.parent", `ancestor "m15-z" is halted (InCycle); resolve that first`))
		shared.let(ctx, "m14-user", "cl", "")
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("m15-w", build.Below("org")), "--as=m14-user",
			"--dry-run=server").Should(allow())
	})
	It("HIER-M16 a move that would make a cycle is refused to all users, and the answer shows the cycle", func(ctx SpecContext) {
		unlawful(ctx, "team-a", "svc-1", "would make a cycle: team-a -> svc-1 -> team-a")
		unlawful(ctx, "team-a", "team-a", "would make a cycle: team-a -> team-a")
	})
	It("HIER-M17 a move of a tenant's root is refused to all users", func(ctx SpecContext) {
		unlawful(ctx, "shop", "org", "shop belongs to LNamespace shop and stays a root")
	})
	It("HIER-M18 a move of a protected namespace, or below one, is refused to all users; a HierarchyConfiguration in kube-system "+
		"is stored unchecked, and has no effect", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("m18-p", v1alpha1.LabelProtected, v1alpha1.True), build.Namespace("locked-m18"))
		unlawful(ctx, "m18-p", "org", "m18-p is a protected namespace")
		for _, target := range []string{"kube-public", "default", "warren-system", "locked-m18"} {
			unlawful(ctx, "solo", target, target+" is a protected namespace")
		}
		unlawful(ctx, "locked-m18", "org", "locked-m18 is a protected namespace")
		system := shared.now(ctx, "kube-system")
		Expect(shared.wish(ctx, build.Hierarchy("kube-system", build.Below("org")))).To(allow())
		Consistently(shared.ns("kube-system")).WithContext(ctx).WithTimeout(quiet).Should(Equal(system))
	})
	It("HIER-M19 a move below a template or a terminating namespace is refused to all users; so is a move of a template's "+
		"instance or a terminating namespace", func(ctx SpecContext) {
		going, content := build.Root("m19-going"), build.Held(build.ConfigMap("m19-going", "hangs", "x"))
		ending := build.Namespace("m19-ending")
		held := build.Held(build.Hierarchy("m19-ending"))
		shared.Create(ctx, build.Template("m19-t"), build.Namespace("m19-i", v1alpha1.LabelTemplate, "m19-t"), going, content, ending, held)
		for _, n := range []client.Object{going, ending} {
			Expect(shared.Admin().Delete(ctx, n)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { shared.LetGo(ctx, content); shared.LetGo(ctx, held) })
		unlawful(ctx, "solo", "m19-t", "m19-t is a template")
		unlawful(ctx, "m19-i", "org", "a sub-namespace can't reference a template")
		unlawful(ctx, "solo", "m19-going", "m19-going is being terminated")
		Expect(shared.kubectl(ctx, "patch", "hierarchyconfiguration", "hierarchy", "-n", "m19-ending", "--type=merge", "-p",
			`{"spec":{"parent":"org"}}`)).
			To(refuse("is invalid: spec.parent", "m19-ending is being terminated"))
	})
	It("HIER-M20 a move of a bound namespace, to another parent or to be a root, is refused to all users; the answer names its "+
		"SubNamespace", func(ctx SpecContext) {
		shared.grow(ctx, "team-b/m20-x")
		unlawful(ctx, "m20-x", "other", "m20-x is bound to SubNamespace team-b/m20-x, which owns its place")
		unlawful(ctx, "m20-x", "", "m20-x is bound to SubNamespace team-b/m20-x, which owns its place")
	})
	It("HIER-M22 a move into a tenant is refused to all users if x and its descendants would exceed the tenant's limit of depth "+
		"or sub-namespaces", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("m22-small").Limits(1, -1))
		shared.tenant(ctx, build.Tenant("m22-flat").Limits(-1, 1))
		unlawful(ctx, "svc-1", "m22-small", "tenant m22-small allows 1 sub-namespaces (0 in use)")
		unlawful(ctx, "svc-1", "m22-flat", "tenant m22-flat: depth 2 exceeds the limit of 1")
	})
	It("HIER-M24 a dry run has the same answer, and no other effect; with --as and --as-group only the rights of that user and "+
		"group count", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("m24-t").Users("alice").Sudoers("alice"))
		shared.Create(ctx, build.Child("m24-x", "m24-t"), build.Namespace("m24-solo"))
		Eventually(shared.ns("m24-x")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("m24-t"), "1"))
		shared.let(ctx, "m24-user", "author", "m24-x")
		shared.let(ctx, "m24-user", "author", "m24-solo")
		shared.let(ctx, "m24-user", "adm", "org")
		shared.let(ctx, "m24-user", "whole", "m24-solo")
		for _, rehearsal := range []string{"server", "none"} {
			leave := func(as ...string) answer {
				return shared.wish(ctx, build.Hierarchy("m24-x", build.Below("")), append(as, "--dry-run="+rehearsal)...)
			}
			Eventually(leave).WithArguments("--as=m24-user").Should(refuse(`user "m24-user" may`, rooted("m24-t").needs))
			Eventually(leave).WithArguments("--as=alice", "--as-group=m24-t-sudoers").
				Should(refuse(`user "alice" may`, cl(`namespace "m24-x" leaves tenant m24-t`).needs))
			Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("m24-solo", build.Below("org")), "--as=m24-user",
				"--dry-run="+rehearsal).Should(allow())
			if rehearsal == "server" {
				shared.Absent(ctx, build.Hierarchy("m24-solo"))
			}
		}
	})
	It("HIER-I5 with webhooks, to propagate or override the label pod-security.kubernetes.io/enforce needs cl", func(ctx SpecContext) {
		shared.let(ctx, "i5-user", "author", "team-a")
		const enforce = "pod-security.kubernetes.io/enforce"
		for _, wish := range []build.Wish{build.Propagating(enforce), build.Overriding(enforce)} {
			Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("team-a", wish), "--as=i5-user").
				Should(refuse("forbidden", "needs update on namespaces cluster-wide"))
		}
	})
	It("HIER-O4 a HierarchyConfiguration that is created right after its namespace is never refused, in 100 attempts", func(ctx SpecContext) {
		for i := range 100 {
			name := fmt.Sprintf("o4-%d", i)
			Expect(shared.Admin().Create(ctx, build.Namespace(name))).To(Succeed())
			Expect(shared.Admin().Create(ctx, build.Hierarchy(name, build.Below("org")))).To(Succeed(), name)
		}
	})
})
