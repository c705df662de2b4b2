package trees_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// runningPeer is a peer whose process runs, in a cluster that moves away from it.
type runningPeer struct {
	*migration
	process *peerProcess
	// prefix is the beginning of the names of its namespaces, group the API group of its kinds.
	prefix, group string
	// contents are the users' objects before the move.
	contents map[string]any
}

// run fills the cluster, starts the peer's processes, of which the first serves its webhooks, and makes the webhook configurations as
// shipped.
func (s *migration) run(ctx context.Context, prefix, group string, processes ...*peerProcess) *runningPeer {
	GinkgoHelper()
	s.apply(ctx, s.peer+"-crds.yaml", s.peer+".yaml")
	s.convertsAt(ctx, processes[0])
	for _, p := range processes {
		p.start(ctx)
		Eventually(p.answers).WithContext(ctx).Should(BeTrue())
	}
	s.applyWebhooks(ctx, processes[0].isCalledBy)
	return &runningPeer{migration: s, process: processes[0], prefix: prefix, group: group}
}

// isCalledBy makes the configuration of a webhook point at the process.
func (p *peerProcess) isCalledBy(webhook map[string]any) {
	to := webhook["clientConfig"].(map[string]any)
	to["caBundle"] = base64.StdEncoding.EncodeToString(p.certificate.Certificate)
	to["service"].(map[string]any)["port"] = int64(p.port)
}

// convertsAt points the conversion webhooks of the peer's CustomResourceDefinitions at the process.
func (s *migration) convertsAt(ctx context.Context, p *peerProcess) {
	GinkgoHelper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(s.Admin().List(ctx, list)).To(Succeed())
	for _, d := range list.Items {
		if conversion := d.Spec.Conversion; conversion.Webhook != nil && strings.HasPrefix(conversion.Webhook.ClientConfig.Service.Name, s.peer) {
			conversion.Webhook.ClientConfig.CABundle, conversion.Webhook.ClientConfig.Service.Port = p.certificate.Certificate, new(int32(p.port))
			Expect(s.Admin().Update(ctx, &d)).To(Succeed())
		}
	}
}

// storesOld installs Accurate's CustomResourceDefinitions, with SubNamespaces stored in version v1 as an old Accurate does, and creates a
// SubNamespace.
func (s *migration) storesOld(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	s.apply(ctx, s.peer+"-crds.yaml")
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "subnamespaces.accurate.cybozu.com"
	edit(ctx, s.cluster, definition, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		for i := range d.Spec.Versions {
			old := d.Spec.Versions[i].Name == "v1"
			d.Spec.Versions[i].Served, d.Spec.Versions[i].Storage = old, old
		}
	})
	s.Create(ctx, build.Namespace(namespace))
	sub := &unstructured.Unstructured{}
	sub.SetGroupVersionKind(schema.GroupVersionKind{Group: "accurate.cybozu.com", Version: "v1", Kind: "SubNamespace"})
	sub.SetNamespace(namespace)
	sub.SetName(name)
	Eventually(func() error { return s.Admin().Create(ctx, sub.DeepCopy()) }).WithContext(ctx).Should(Succeed())
}

// hasCopied waits until the peer has made so many copies, which isCopy recognizes.
func (r *runningPeer) hasCopied(ctx context.Context, count int, isCopy func(labels, annotations map[string]string) bool) {
	GinkgoHelper()
	Eventually(func() []string {
		r.copies = nil
		for name, object := range r.state(ctx, r.prefix) {
			if isCopy(object.Labels, object.Annotations) {
				r.copies = append(r.copies, name)
			}
		}
		return r.copies
	}).WithContext(ctx).Should(HaveLen(count))
	r.contents = r.readContents(ctx, r.prefix)
}

// readContents returns the users' objects by name: all but their metadata.
func (s *migration) readContents(ctx context.Context, prefix string) map[string]any {
	GinkgoHelper()
	found := map[string]any{}
	for _, kind := range s.kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(s.Admin().List(ctx, list)).To(Succeed())
		for _, object := range list.Items {
			if strings.HasPrefix(object.GetNamespace(), prefix) && object.GetName() != "kube-root-ca.crt" {
				name := kind.Kind + " " + object.GetNamespace() + "/" + object.GetName()
				delete(object.Object, "metadata")
				found[name] = object.Object
			}
		}
	}
	return found
}

// plansWithoutChange expects a plan that changes nothing.
func (r *runningPeer) plansWithoutChange(ctx context.Context) {
	GinkgoHelper()
	before := metadataOf(r.state(ctx, r.prefix))
	Expect(r.planned(ctx).Steps).NotTo(BeEmpty())
	Expect(metadataOf(r.state(ctx, r.prefix))).To(Equal(before))
}

// moves carries out the steps. It expects that the process ended before the first of the peer's objects was changed. It expects that no
// object of the users was replaced or has other contents.
func (r *runningPeer) moves(ctx context.Context, flags ...string) {
	GinkgoHelper()
	before := r.state(ctx, r.prefix)
	since := r.Mark(ctx)
	for _, flag := range flags {
		r.done(ctx, controlplane.Admin, r.args(flag, "--yes")...)
	}
	Expect(r.process.answers()).To(BeFalse())
	r.ended(ctx, since)
	Expect(uidsOf(r.state(ctx, r.prefix))).To(Equal(uidsOf(before)))
	Expect(r.readContents(ctx, r.prefix)).To(Equal(r.contents))
}

// ended expects that the peer's process wrote nothing after the migration had changed the first of its objects.
func (r *runningPeer) ended(ctx context.Context, since audit.Position) {
	GinkgoHelper()
	requests, err := r.Requests(ctx, since)
	Expect(err).NotTo(HaveOccurred())
	touched := false
	for _, request := range requests {
		touched = touched || request.Group == r.group && request.IsWrite() && strings.HasPrefix(request.UserAgent, "kubectl-warren")
		Expect(touched && request.IsWrite() && strings.Contains(request.As, "serviceaccount:"+r.process.namespace)).To(BeFalse(), "%s", request)
	}
	Expect(touched).To(BeTrue())
}

// returns undoes the move, and expects all to be as before. Copies may be other objects, because HNC makes them anew.
func (r *runningPeer) returns(ctx context.Context, before map[string]map[string]string) {
	GinkgoHelper()
	r.done(ctx, controlplane.Admin, r.args("--undo", "--yes")...)
	Eventually(func() map[string]map[string]string { return metadataOf(r.state(ctx, r.prefix)) }).WithContext(ctx).Should(Equal(before))
	Eventually(func() map[string]any { return r.readContents(ctx, r.prefix) }).WithContext(ctx).Should(Equal(r.contents))
	webhooks, _, _ := r.Kubectl(ctx, controlplane.Admin, "get", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "-o", "yaml")
	Expect(webhooks).NotTo(ContainSubstring("name: warren-migration"))
}

// isCleanedUp runs the commands of the guide, and expects that all the users' objects stay.
func (r *runningPeer) isCleanedUp(ctx context.Context) {
	GinkgoHelper()
	before := r.state(ctx, r.prefix)
	r.cleanUp(ctx, r.process.namespace)
	r.isHealthy(ctx)
	Expect(uidsOf(r.state(ctx, r.prefix))).To(Equal(uidsOf(before)))
	Expect(r.readContents(ctx, r.prefix)).To(Equal(r.contents))
	Expect(r.planned(ctx).Steps).To(BeEmpty())
}

// alarms returns the Events by which the operator reports copies that are refused.
func (r *runningPeer) alarms(ctx context.Context) (found []string) {
	GinkgoHelper()
	events := &corev1.EventList{}
	Expect(r.Admin().List(ctx, events)).To(Succeed())
	for _, e := range events.Items {
		if strings.HasPrefix(e.Namespace, r.prefix) && (e.Reason == string(v1alpha1.ReasonCopyRejected) ||
			e.Reason == string(v1alpha1.ReasonCageRefused)) {
			found = append(found, e.Namespace+"/"+e.InvolvedObject.Name+": "+e.Message)
		}
	}
	return found
}

// refuses expects a command of a cluster admin to be refused.
func (r *runningPeer) refuses(ctx context.Context, why string, args ...string) {
	GinkgoHelper()
	_, problems, code := r.Kubectl(ctx, controlplane.Admin, args...)
	Expect(code).NotTo(BeZero(), strings.Join(args, " "))
	Expect(problems).To(ContainSubstring(why))
}

// letsUsersWork makes and deletes a namespace while the peer is at rest.
func (r *runningPeer) letsUsersWork(ctx context.Context, parent string) {
	GinkgoHelper()
	name := r.prefix + "meanwhile"
	r.done(ctx, controlplane.Admin, "create", name, "-n", parent, "--wait")
	r.done(ctx, controlplane.Admin, "delete", name)
	r.isRid(ctx, build.Namespace(name))
}

// makesNamespace has the peer make a namespace, expects the copy in it, and deletes the namespace's owner again.
func (r *runningPeer) makesNamespace(ctx context.Context, kind schema.GroupVersionKind, parent, expected string) {
	GinkgoHelper()
	owner, name := &unstructured.Unstructured{}, r.prefix+"new"
	owner.SetGroupVersionKind(kind)
	owner.SetNamespace(parent)
	owner.SetName(name)
	Eventually(func() error { return r.Admin().Create(ctx, owner.DeepCopy()) }).WithContext(ctx).Should(Succeed())
	Eventually(func() map[string]any { return r.readContents(ctx, name) }).WithContext(ctx).Should(HaveKey(expected))
	Expect(r.Admin().Delete(ctx, owner)).To(Succeed())
	r.isRid(ctx, build.Namespace(name))
}

var _ = Describe("kubectl warren migrate beside a peer that runs", Ordered, func() {
	var own cluster
	var config string
	var r *runningPeer

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{Webhooks: true, Operator: devcluster.OperatorOptions{Config: migrating}})
		config = filepath.Join(GinkgoT().TempDir(), "config.yaml")
		Expect(os.WriteFile(config, []byte(migrating), 0o600)).To(Succeed())
		node := &corev1.Node{}
		node.Name = "peer"
		own.Create(ctx, node)
	})

	It("MIG-M1 the error names a peer that is not installed, or Warren's configuration that can't be read, "+
		"and what to do", func(ctx SpecContext) {
		for peer, title := range map[string]string{"hnc": "HNC", "accurate": "Accurate", "capsule": "Capsule"} {
			Expect(own.fails(ctx, controlplane.Admin, "migrate", peer, "--config", config)).To(And(HavePrefix("the API server has no kind of "),
				HaveSuffix(": "+title+" is not installed here; use --context to choose another cluster")))
		}
		Expect(own.fails(ctx, controlplane.Admin, "migrate", "hnc", "--operator-namespace", "elsewhere")).
			To(HavePrefix("the configuration of Warren, which says which kinds are copied, can't be read; name a file with --config, or the " +
				"operator's namespace with --operator-namespace: "))
	})

	Context("HNC", func() {
		BeforeAll(func(ctx SpecContext) {
			s := &migration{cluster: own, peer: "hnc", config: config, kinds: []schema.GroupVersionKind{rbacKind("Role"), rbacKind("RoleBinding"),
				secretKind, configMapKind}}
			manager, list := own.newHNC()
			r = s.run(ctx, "h-", "hnc.x-k8s.io", manager.peerProcess, list)
			own.Create(ctx, list.apiService())
			Eventually(func() string {
				out, _, _ := own.Kubectl(ctx, controlplane.Admin, "get", "apiservice", list.apiService().GetName(), "-o",
					"jsonpath={.status.conditions}")
				return out
			}).WithContext(ctx).Should(ContainSubstring(`"status":"True"`))
			r.hasCopied(ctx, 13, isHNCsCopy)
		})

		It("MIG-R1 while HNC runs and refuses changes, such as edits of copies, the plan writes nothing", func(ctx SpecContext) {
			r.refuses(ctx, "cannot modify object propagated", "annotate", "role", "reader", "-n", "h-team", "a=b")
			r.refuses(ctx, "cannot delete object propagated", "delete", "role", "reader", "-n", "h-team")
			r.refuses(ctx, "cannot set or modify tree labels", "label", "namespace", "h-team", "h-org.tree.hnc.x-k8s.io/depth=7", "--overwrite")
			r.refuses(ctx, "is a subnamespace", "delete", "namespace", "h-team")
			r.plansWithoutChange(ctx)
		})

		It("MIG-M1 the error names a record that can't be read, and the command that deletes it", func(ctx SpecContext) {
			record := build.ConfigMap("warren-system", "warren-migration-hnc", "")
			own.Create(ctx, record)
			Expect(r.fails(ctx, controlplane.Admin, r.args()...)).To(And(HavePrefix("ConfigMap warren-system/warren-migration-hnc can't be read ("),
				HaveSuffix("If no --apply has begun, delete it: kubectl delete configmap -n warren-system warren-migration-hnc")))
			own.Delete(ctx, record)
		})

		It("MIG-R8 --apply writes nothing if HNC has 0 replicas and its webhooks refuse; "+
			"the error says to start HNC first", func(ctx SpecContext) {
			scale := func(replicas string) {
				r.script(ctx, "kubectl scale deployment -n hnc-system hnc-controller-manager --replicas="+replicas)
				Eventually(r.process.answers).WithContext(ctx).Should(Equal(replicas == "1"))
			}
			before := uidsOf(r.state(ctx, "h-"))
			scale("0")
			Expect(r.fails(ctx, controlplane.Admin, r.args("--apply", "--yes")...)).
				To(And(ContainSubstring("nothing was written: create of ConfigMap"),
					ContainSubstring("Start HNC first if the webhook is its own (kubectl get deployments -n hnc-system)"),
					Not(ContainSubstring("HNC is stopped"))))
			scale("1")
			for _, name := range r.copies {
				Eventually(func() types.UID { return uidsOf(r.state(ctx, "h-"))[name] }).WithContext(ctx).
					ShouldNot(BeElementOf(before[name], types.UID("")), "HNC makes it anew")
			}
		})

		It("MIG-R2 HNC writes nothing after the migration's first write of its objects, users work on, and after --undo HNC works again; "+
			"MIG-R9 no Event reports that a copy was refused", func(ctx SpecContext) {
			before := metadataOf(r.state(ctx, "h-"))
			r.moves(ctx, "--apply")
			Eventually(r.ns("h-svc")).WithContext(ctx).Should(standing("h-org", "2"))
			Expect(r.alarms(ctx)).To(BeEmpty(), "MIG-R9")
			r.letsUsersWork(ctx, "h-team")
			r.returns(ctx, before)
			r.makesNamespace(ctx, anchorKind, "h-lab", "RoleBinding h-new/readers")
		})

		It("MIG-R3 after --apply, --finish and the guide's commands nothing of HNC is left; "+
			"users' objects keep UID and content", func(ctx SpecContext) {
			r.moves(ctx, "--apply", "--finish")
			r.isCleanedUp(ctx)
			r.taken(ctx, "hnc.x-k8s.io")
		})
	})

	Context("Accurate", func() {
		BeforeAll(func(ctx SpecContext) {
			s := &migration{cluster: own, peer: "accurate", config: config, kinds: []schema.GroupVersionKind{secretKind}}
			s.storesOld(ctx, "a-root", "a-instance")
			r = s.run(ctx, "a-", "accurate.cybozu.com", own.newAccurate().peerProcess)
			r.hasCopied(ctx, 6, func(_, annotations map[string]string) bool { return annotations[accurateFrom] != "" })
		})

		It("MIG-R4 while Accurate runs and refuses changes, such as a cycle, the plan writes nothing", func(ctx SpecContext) {
			r.refuses(ctx, "circular reference", "label", "namespace", "a-sub", "accurate.cybozu.com/parent=a-deep", "--overwrite")
			r.refuses(ctx, "child namespaces exist", "delete", "subnamespaces.accurate.cybozu.com", "-n", "a-root", "a-sub")
			r.refuses(ctx, "child namespaces exist", "delete", "namespace", "a-tmpl")
			r.plansWithoutChange(ctx)
		})

		It("MIG-R7 --apply is refused while objects may be in a version that only Accurate's webhook converts; the error's command rewrites them",
			func(ctx SpecContext) {
				problem := r.fails(ctx, controlplane.Admin, r.args("--apply", "--yes")...)
				Expect(problem).
					To(ContainSubstring("nothing was written, because subnamespaces.accurate.cybozu.com may have objects in an old version"))
				Expect(r.process.answers()).To(BeTrue())
				r.script(ctx, regexp.MustCompile(`kubectl get .*`).FindString(problem))
			})

		It("MIG-M1 the error names a --peer-config that is not the configuration file of Accurate", func(ctx SpecContext) {
			Expect(r.fails(ctx, controlplane.Admin, r.args("--peer-config", filepath.Join("testdata", "hnc-crds.yaml"))...)).
				To(HavePrefix("--peer-config is not the configuration file of Accurate"))
		})

		It("MIG-R5 Accurate writes nothing after the migration's first write of its objects, users work on, and after --undo it works again; "+
			"MIG-R9 objects that Accurate did not copy are copied as planned, and no Event reports that a copy was refused", func(ctx SpecContext) {
			before := metadataOf(r.state(ctx, "a-"))
			own.Create(ctx, build.ConfigMap("a-root", "unwatched", ""), build.RoleBinding("a-root", "unwatched", "view", build.RBACUser("carol")))
			r.moves(ctx, "--apply")
			Eventually(own.Read(build.RoleBinding("a-deep", "unwatched", "view"))).WithContext(ctx).Should(Succeed(),
				"the plan named it: mode All copies it anew")
			Expect(r.alarms(ctx)).To(BeEmpty(), "MIG-R9")
			Eventually(r.ns("a-deep")).WithContext(ctx).Should(standing("a-root", "2"))
			r.letsUsersWork(ctx, "a-sub")
			r.returns(ctx, before)
			r.makesNamespace(ctx, accurateSubKind, "a-root", "Secret a-new/base")
		})

		It("MIG-R6 after --apply, --finish and the guide's commands nothing of Accurate is left; "+
			"users' objects keep UID and content", func(ctx SpecContext) {
			r.moves(ctx, "--apply", "--finish")
			r.isCleanedUp(ctx)
		})
	})
})
