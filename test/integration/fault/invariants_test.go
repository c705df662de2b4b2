package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// begun is a scene whose invariants are watched: FLT-I1, I2, I5, I6 and I8.
type begun struct {
	*scene
	ctx  context.Context
	mark audit.Position
	stop func()
}

// begin watches the invariants of a scene.
func (s *scene) begin(ctx context.Context) *begun {
	GinkgoHelper()
	mark, err := audit.End(s.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	return &begun{scene: s, ctx: ctx, mark: mark, stop: s.rights.begin(s)}
}

// check returns what broke the invariants in a scene that has ended. Without a fault, the story makes this many writes that count for
// FLT-I6.
func (b *begun) check(story story, c *counter, writes int) (wrong []string) {
	GinkgoHelper()
	b.stop()
	requests, err := b.Requests(b.ctx, b.mark)
	Expect(err).NotTo(HaveOccurred())
	events := b.eventsOf(b.key)
	for name, broken := range map[string][]string{
		"I1": append(touched(b.scene, events, requests), vanished(b.scene, story, events)...),
		"I2": b.rights.broken(b.ctx, b.scene),
		"I5": append(misordered(events), story.misordered(b.scene, events)...),
		"I8": append(flickering(events, c.faults()), hasty(b.scene, events)...),
	} {
		for _, line := range broken {
			wrong = append(wrong, name+": "+line)
		}
	}
	if c.amplifies(writes) {
		wrong = append(wrong, fmt.Sprintf("FLT-I6: %d writes, %d without a fault, %d faults; by life: %v\n%s", c.objects, writes, c.faults(),
			c.lives, strings.Join(c.sent, "\n")))
	}
	for i := range wrong {
		wrong[i] = b.key + ": " + wrong[i]
	}
	return wrong
}

// isOurs reports whether the operator has written an object, so that it may change and delete it.
func isOurs(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Namespace", "LNamespace", "SubNamespace", "HierarchyConfiguration", "ResourceDistribution":
		return true // the operator has fields of its own in them; vanished checks for those that must not be deleted
	}
	for _, key := range []string{v1alpha1.LabelInheritedFrom, v1alpha1.LabelAccess, v1alpha1.LabelDistributedBy} {
		if u.GetLabels()[key] != "" {
			return true
		}
	}
	return false
}

// contentOf is what a user has written into an object.
func contentOf(u *unstructured.Unstructured) string {
	bare := u.DeepCopy()
	unstructured.RemoveNestedField(bare.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(bare.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(bare.Object, "metadata", "deletionTimestamp")
	unstructured.RemoveNestedField(bare.Object, "metadata", "deletionGracePeriodSeconds")
	unstructured.RemoveNestedField(bare.Object, "metadata", "finalizers")
	unstructured.RemoveNestedField(bare.Object, "status")
	text, err := json.Marshal(bare.Object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// touched are the objects of users that the operator changed or deleted (FLT-I1). It compares each event with the writes in the audit
// log. Planted objects must not be changed by any client, and are deleted only with their namespace.
func touched(s *scene, events []event, requests []audit.Request) (wrong []string) {
	byOperator := map[string]audit.Request{}
	for _, r := range requests {
		if r.Code < 300 && r.IsWrite() && r.Verb != "create" && isOperator(r.User) {
			byOperator[r.Resource+" "+r.Namespace+"/"+r.Name] = r
		}
	}
	ends := map[string]bool{}
	for _, e := range events {
		if e.object.GetKind() == "Namespace" && e.object.GetDeletionTimestamp() != nil {
			ends[e.object.GetName()] = true
		}
	}
	for _, e := range events {
		if e.before == nil || isOurs(e.before) {
			continue
		}
		place := placeOf(e.object)
		resource := strings.ToLower(e.object.GetKind()) + "s " + e.object.GetNamespace() + "/" + e.object.GetName()
		if r, there := byOperator[resource]; there {
			wrong = append(wrong, fmt.Sprintf("%s %s: %s", place, e.kind, r))
		}
		if e.object.GetName() != planted {
			continue
		}
		if e.kind == watch.Modified && contentOf(e.before) != contentOf(e.object) {
			wrong = append(wrong, fmt.Sprintf("%s has become %s", place, contentOf(e.object)))
		}
		if e.kind == watch.Deleted && !ends[e.object.GetNamespace()] && !s.wasAsked(place) {
			wrong = append(wrong, place+" is gone, and its namespace is not")
		}
	}
	return wrong
}

func isOperator(user string) bool {
	return strings.HasPrefix(user, "system:serviceaccount:warren-system:")
}

// vanished are the Namespaces that were deleted although no step of the story deletes them (FLT-I1).
func vanished(s *scene, story story, events []event) (wrong []string) {
	for _, e := range events {
		if e.object.GetKind() == "Namespace" && e.kind == watch.Deleted && !slices.ContainsFunc(story.goes, func(name string) bool {
			return s.own(name) == e.object.GetName()
		}) {
			wrong = append(wrong, placeOf(e.object)+" is gone, and nobody asked for it")
		}
	}
	return wrong
}

// misordered are the bindings that were created before their role, and the Namespaces that were incomplete when they were created
// (FLT-I5).
func misordered(events []event) (wrong []string) {
	exist := map[string]bool{}
	for _, e := range events {
		object, place := e.object, placeOf(e.object)
		exist[place] = e.kind != watch.Deleted
		if e.kind != watch.Added {
			continue
		}
		labels := object.GetLabels()
		if name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); strings.HasPrefix(name, "warren:") &&
			labels[v1alpha1.LabelTenant] != "" {
			kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
			if role := kind + " /" + name; kind == "ClusterRole" && name != impersonateOn && !exist[role] {
				wrong = append(wrong, place+" came before "+role)
			}
		}
		if object.GetKind() == "Namespace" && labels[v1alpha1.LabelCreatedBy] == v1alpha1.OperatorName &&
			labels[v1alpha1.LabelParent] == "" && labels[v1alpha1.LabelType] == "" {
			wrong = append(wrong, place+" came without its labels")
		}
	}
	return wrong
}

// impersonateOn is the ClusterRole that all tenants share in mode Constrained.
const impersonateOn = "warren:impersonate-on"

// flickering are the conditions that changed more often than the faults and the changes of the object's spec explain (FLT-I8).
func flickering(events []event, faults int) (wrong []string) {
	changes, last, specs := map[string]int{}, map[string]string{}, map[string]map[int64]bool{}
	for _, e := range events {
		conditions, _, _ := unstructured.NestedSlice(e.object.Object, "status", "conditions")
		for _, c := range conditions {
			condition := c.(map[string]any)
			of := placeOf(e.object) + " " + fmt.Sprint(condition["type"])
			if status := fmt.Sprint(condition["status"]); last[of] != status {
				changes[of]++
				last[of] = status
			}
			if specs[of] == nil {
				specs[of] = map[int64]bool{}
			}
			specs[of][e.object.GetGeneration()] = true
		}
	}
	for of, n := range changes {
		if n > 2*len(specs[of])+2*faults {
			wrong = append(wrong, fmt.Sprintf("%s changed %d times with %d faults", of, n, faults))
		}
	}
	return wrong
}

// hasty are the tenants that were Ready before their rights were there (FLT-I8).
func hasty(s *scene, events []event) (wrong []string) {
	ready := map[string]int64{} // by LNamespace, the generation that is Ready
	for _, e := range events {
		name := e.object.GetName()
		if e.object.GetKind() == "LNamespace" {
			delete(ready, name)
			conditions, _, _ := unstructured.NestedSlice(e.object.Object, "status", "conditions")
			for _, c := range conditions {
				condition := c.(map[string]any)
				if at, _ := condition["observedGeneration"].(int64); condition["type"] == "Ready" && condition["status"] == "True" &&
					at == e.object.GetGeneration() {
					ready[name] = at
				}
			}
			continue
		}
		tenant := e.object.GetLabels()[v1alpha1.LabelTenant]
		if _, isReady := ready[tenant]; isReady && e.kind == watch.Added && e.object.GetLabels()[v1alpha1.LabelInheritedFrom] ==
			"" && !s.regrants {
			wrong = append(wrong, fmt.Sprintf("%s came after %s was Ready", placeOf(e.object), tenant))
		}
	}
	return wrong
}

// rests checks that the operator writes nothing (FLT-I3).
func (s *stage) rests(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		mark, err := s.Mark(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Consistently(ctx, func() ([]audit.Request, error) { return s.Writes(ctx, mark) }).
			WithTimeout(test.Quiet(time.Minute)).WithPolling(500 * time.Millisecond).Should(BeEmpty())
	}).Should(Succeed(), "FLT-I3")
}

// isReady reports whether the operator is ready in that life or a later one.
func (s *stage) isReady(ctx context.Context, life int) bool {
	return s.now() >= life && process.HTTPOK(nil, s.Operator.HealthURL+"/readyz")(ctx) == nil
}

// checkProcess checks how the operator's lives ended, and what memory they took (FLT-I7).
func (s *stage) checkProcess() {
	GinkgoHelper()
	s.mu.Lock()
	defer s.mu.Unlock()
	Expect(s.ends).To(BeEmpty(), "FLT-I7")
	Expect(slices.ContainsFunc(s.codes, func(code int) bool { return code != 0 })).To(BeFalse(), "FLT-I7: %v", s.codes)
	Expect(s.Operator.Sound()).To(Succeed(), "FLT-I7")
	if s.calmPeak > 0 {
		AddReportEntry("memory", fmt.Sprintf("%d KiB without faults, %d KiB with", s.calmPeak, s.peak), ReportEntryVisibilityFailureOrVerbose)
		Expect(s.peak).To(BeNumerically("<=", 2*s.calmPeak), "FLT-I7: KiB")
	}
}

// firstWrite is the resource and the name of the operator's first write about the scene; "" if there is none. A write of a status doesn't
// count: it grants and revokes no right, and another controller sends it. A failed write counts: if its connection ended, it may have
// succeeded all the same.
func (s *scene) firstWrite(writes []audit.Request) string {
	for _, w := range writes {
		if w.Subresource != "status" && strings.Contains(w.URI, s.own("")) {
			return w.Resource + " " + w.Name
		}
	}
	return ""
}
