package billing_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// pod has a node, though no kubelet, unless it waits for a scheduler that isn't there.
func pod(ctx context.Context, namespace, name, cpu string, change func(*corev1.PodSpec)) *corev1.Pod {
	GinkgoHelper()
	p := &corev1.Pod{}
	p.Namespace, p.Name = namespace, name
	p.Spec = corev1.PodSpec{NodeName: "hours", SchedulerName: "nobody", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi")}}}}}
	change(&p.Spec)
	// The namespace needs its default ServiceAccount first.
	Eventually(func() error { return world.Admin().Create(ctx, p) }).WithContext(ctx).Should(Succeed())
	return p
}

func asIs(*corev1.PodSpec) {}

func ended(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	Expect(world.Admin().Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))).To(Succeed())
}

// claim is bound to a volume of its own.
func claim(ctx context.Context, namespace, name, size string) {
	GinkgoHelper()
	requested, none := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}, ""
	volume := &corev1.PersistentVolume{}
	volume.Name = namespace + "-" + name
	volume.Spec = corev1.PersistentVolumeSpec{Capacity: requested, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}}}
	c := &corev1.PersistentVolumeClaim{}
	c.Namespace, c.Name = namespace, name
	c.Spec = corev1.PersistentVolumeClaimSpec{AccessModes: volume.Spec.AccessModes, StorageClassName: &none, VolumeName: volume.Name,
		Resources: corev1.VolumeResourceRequirements{Requests: requested}}
	Expect(world.Admin().Create(ctx, volume)).To(Succeed())
	Expect(world.Admin().Create(ctx, c)).To(Succeed())
	Eventually(func() corev1.PersistentVolumeClaimPhase {
		_ = world.Admin().Get(ctx, client.ObjectKeyFromObject(c), c)
		return c.Status.Phase
	}).WithContext(ctx).WithTimeout(2 * time.Minute).Should(Equal(corev1.ClaimBound))
}

// maySeePods asks as the API server's authorizer would answer.
func maySeePods(ctx context.Context) func() bool {
	return func() bool {
		for _, verb := range []string{"list", "watch"} {
			for _, kind := range []string{"pods", "persistentvolumeclaims"} {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account,
					ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: kind}}}
				if err := world.Admin().Create(ctx, review); err != nil || !review.Status.Allowed {
					return false
				}
			}
		}
		return true
	}
}

// deploymentEvents are the reasons of the Events on the exporter's Deployment.
func deploymentEvents(ctx context.Context) func() []string {
	return func() (reasons []string) {
		events := &corev1.EventList{}
		if err := world.Admin().List(ctx, events, client.InNamespace("warren-system")); err != nil {
			return []string{err.Error()}
		}
		for i := range events.Items {
			reasons = append(reasons, events.Items[i].Reason)
		}
		return reasons
	}
}

var _ = Describe("hours", Ordered, func() {
	var e *exporter
	var db *sql.DB
	var store *billing.Store
	var file, live, plain string
	var finished, deleted, resized *corev1.Pod
	var since time.Time

	BeforeAll(func(ctx SpecContext) {
		plain, live = "hours", "hours-live"
		tenant(ctx, plain, "4711")
		node := &corev1.Node{}
		node.Name = "hours"
		roomy := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("99")}
		node.Status = corev1.NodeStatus{Capacity: roomy, Allocatable: roomy}
		Expect(world.Admin().Create(ctx, node)).To(Succeed())
		Expect(world.Admin().Create(ctx, build.Namespace(live))).To(Succeed())
		always := corev1.ContainerRestartPolicyAlways
		pod(ctx, plain, "steady", "500m", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "sidecar", Image: "app", RestartPolicy: &always, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}
		})
		pod(ctx, plain, "waits", "4", func(s *corev1.PodSpec) { s.NodeName = "" })
		ended(ctx, pod(ctx, plain, "ended", "8", asIs))
		claim(ctx, plain, "data", "3Gi")
		finished, deleted = pod(ctx, live, "finished", "500m", asIs), pod(ctx, live, "deleted", "250m", asIs)
		resized = pod(ctx, live, "resized", "1", asIs)
		file = filepath.Join(world.Dir, "hours", "billing.db")
	})
	AfterAll(func() {
		e.end()
		if db != nil {
			Expect(db.Close()).To(Succeed())
		}
	})

	number := func(ctx context.Context, query string, args ...any) func() (int64, error) {
		return func() (n int64, err error) {
			err = db.QueryRowContext(ctx, query, args...).Scan(&n)
			return n, err
		}
	}
	soFar := func(ctx context.Context) func() (int64, error) {
		return number(ctx, `SELECT coalesce(max(payload ->> 'covered_seconds'), 0) FROM outbox_usage WHERE final = 0`)
	}
	// pieces kills the exporter, starts it again, and gives what it has measured since the last time, in units times seconds.
	pieces := func(ctx context.Context) (covered int64, cpu, storage func(namespace string) int64) {
		GinkgoHelper()
		Eventually(soFar(ctx)).WithContext(ctx).Should(BeNumerically(">=", 3))
		Expect(e.Kill()).To(Succeed())
		from := since.Add(-time.Second).UTC().Format("2006-01-02T15:04:05.000000Z")
		since = time.Now()
		e.again(ctx)
		const ours = ` FROM tenant_billing_usage AS u WHERE u.covered_from >= ? AND u.namespace = ? AND u.covered_from IN
(SELECT covered_from FROM tenant_billing_usage WHERE namespace = '')`
		Eventually(func(g Gomega) { // at the end of an hour there are two pieces: all of them must be there
			before, err := number(ctx, `SELECT count(*)`+ours, from, "")()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(before).To(BeNumerically(">", 0))
			g.Consistently(number(ctx, `SELECT count(*)`+ours, from, "")).WithTimeout(test.Quiet(time.Second)).Should(Equal(before))
		}).WithContext(ctx).Should(Succeed())
		sum := func(column, namespace string) int64 {
			n, err := number(ctx, `SELECT coalesce(sum(`+column+`), 0)`+ours, from, namespace)()
			Expect(err).NotTo(HaveOccurred())
			return n
		}
		return sum("covered_seconds", ""), func(namespace string) int64 { return sum("cpu_millicore_seconds", namespace) },
			func(namespace string) int64 { return sum("storage_mib_seconds", namespace) }
	}

	It("BILL-62 leave no trace unless switched on, and ask for their right", func(ctx SpecContext) {
		Expect(maySeePods(ctx)()).To(BeFalse())
		config := func(more string) string {
			return configuration(fmt.Sprintf("sqlite: {path: %q}%s", file, more), "sqlite")
		}
		e = startExporter(ctx, "hours", config(""))
		Eventually(exported(ctx, plain)).WithContext(ctx).Should(Equal("True/Exported"))
		var err error
		db, err = billing.OpenSQLite(file)
		Expect(err).NotTo(HaveOccurred())
		store = opened(billing.SQLite, db)
		Expect(number(ctx, `SELECT count(*) FROM sqlite_master WHERE name LIKE 'tenant_billing_usage%' OR name = 'tenant_billing_hours'`)()).To(BeZero())

		e.end()
		since = time.Now()
		e = startExporter(ctx, "hours", config("\n  usage: {enabled: true}"))
		Eventually(deploymentEvents(ctx)).WithContext(ctx).Should(ContainElement("BillingHoursNotMeasured"))
		Expect(world.Admin().Patch(ctx, build.Tenant(plain).Object(), paying("4712"))).To(Succeed())
		Eventually(periods(ctx, store, plain)).WithContext(ctx).Should(Equal([]string{"hours 4711", "hours 4712"}))
		Expect(soFar(ctx)()).To(BeZero())

		manifests, err := devcluster.RenderWith("config/overlays/standard", "config/components/billing-usage")
		Expect(err).NotTo(HaveOccurred())
		var rights devcluster.Manifests
		for _, u := range manifests {
			if u.GetName() == "warren-billing-usage" {
				rights = append(rights, u)
			}
		}
		Expect(rights).To(HaveLen(2), "role and binding")
		Expect(devcluster.Apply(ctx, world.Config(controlplane.Admin), rights)).To(Succeed())
		Eventually(maySeePods(ctx)).WithContext(ctx).Should(BeTrue())
		Eventually(deploymentEvents(ctx)).WithContext(ctx).WithTimeout(3 * time.Minute).Should(ContainElement("BillingHoursMeasured"))
	})

	It("BILL-61 are what lasted, times the seconds that were covered", func(ctx SpecContext) {
		covered, cpu, storage := pieces(ctx)
		Expect(covered).To(BeNumerically(">=", 3))
		Expect(cpu(plain)).To(Equal(600*covered), "container and sidecar; not what waits, not what has ended")
		Expect(storage(plain)).To(Equal(3 * 1024 * covered))
		Expect(cpu(live)).To(Equal(1750*covered), "a namespace of no tenant")

		Eventually(soFar(ctx)).WithContext(ctx).Should(BeNumerically(">=", 2))
		ended(ctx, finished)
		Expect(world.Admin().Delete(ctx, deleted, client.GracePeriodSeconds(0))).To(Succeed())
		Expect(world.Admin().SubResource("resize").Patch(ctx, resized, client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"2"}}}]}}`)))).To(Succeed())
		changed, err := soFar(ctx)()
		Expect(err).NotTo(HaveOccurred())
		Eventually(soFar(ctx)).WithContext(ctx).Should(BeNumerically(">=", changed+2))
		covered, cpu, _ = pieces(ctx)
		Expect(cpu(plain)).To(Equal(600 * covered))
		Expect(cpu(live)).To(And(BeNumerically(">", 1000*covered), BeNumerically("<", 2000*covered)), "%d s", covered)

		covered, cpu, _ = pieces(ctx)
		Expect(cpu(live)).To(Equal(2000*covered), "the resized one alone")
		var tenantOf, payer string
		Expect(db.QueryRowContext(ctx, `SELECT tenant, cost_center FROM tenant_billing_hours WHERE namespace = ? ORDER BY hour DESC LIMIT 1`, plain).
			Scan(&tenantOf, &payer)).To(Succeed())
		Expect(tenantOf + " " + payer).To(Equal("hours 4712"))
	})
})
