package distribution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

// field is what one case works with: namespaces with a label of its own, and one distribution of a Secret with a name of its own.
type field struct {
	words.Cluster
	id, d1, d2, d3, x1 string
}

// plough makes d1 to d3, which the label dist selects, and x1, which it does not.
func plough(ctx context.Context, w *devcluster.World) *field {
	GinkgoHelper()
	id := "f" + rand.String(6)
	f := &field{Cluster: words.Cluster{World: w}, id: id, d1: id + "-d1", d2: id + "-d2", d3: id + "-d3", x1: id + "-x1"}
	for _, name := range []string{f.d1, f.d2, f.d3} {
		f.namespace(ctx, name, "dist", id)
	}
	f.namespace(ctx, f.x1)
	return f
}

// namespace makes a namespace. It stays when the case ends: to empty a namespace takes an API server 70 requests.
func (f *field) namespace(ctx context.Context, name string, labels ...string) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, build.Namespace(name, labels...))).To(Succeed())
}

// namespaces makes so many namespaces, which no label selects, and returns their names, sorted.
func (f *field) namespaces(ctx context.Context, many int) (names []string) {
	GinkgoHelper()
	for i := range many {
		names = append(names, fmt.Sprintf("%s-n%03d", f.id, i))
		f.namespace(ctx, names[i])
	}
	return names
}

// secret is spec.resource: a Secret with these data, as stringData.
func (f *field) secret(data map[string]string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": f.id, "labels": map[string]string{"app": "pull"}},
		"stringData": data,
	}
}

func (f *field) selecting() v1alpha1.DistributionTargets {
	return v1alpha1.DistributionTargets{NamespaceLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"dist": f.id}}}
}

type change func(*v1alpha1.ResourceDistribution)

func raw(resource map[string]any) runtime.RawExtension {
	GinkgoHelper()
	data, err := json.Marshal(resource)
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: data}
}

func (f *field) holding(data map[string]string) change {
	return func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Resource = raw(f.secret(data)) }
}

func targeting(targets v1alpha1.DistributionTargets) change {
	return func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Targets = targets }
}

func onConflict(p v1alpha1.ConflictPolicy) change {
	return func(rd *v1alpha1.ResourceDistribution) { rd.Spec.ConflictPolicy = p }
}

func onDrift(p v1alpha1.DriftPolicy) change {
	return func(rd *v1alpha1.ResourceDistribution) { rd.Spec.DriftPolicy = p }
}

func onDeletion(p v1alpha1.DeletionPolicy) change {
	return func(rd *v1alpha1.ResourceDistribution) { rd.Spec.DeletionPolicy = p }
}

// object is the ResourceDistribution of a case: the Secret with v=1 to the namespaces that the label selects, with these changes.
func (f *field) object(changes ...change) *v1alpha1.ResourceDistribution {
	GinkgoHelper()
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: f.id}}
	rd.Spec.Resource, rd.Spec.Targets = raw(f.secret(map[string]string{"v": "1"})), f.selecting()
	for _, c := range changes {
		c(rd)
	}
	return rd
}

func (f *field) create(ctx context.Context, changes ...change) {
	GinkgoHelper()
	rd := f.object(changes...)
	if len(rd.Spec.Targets.IncludedNamespaces)+len(rd.Spec.Targets.Trees) > 0 {
		begun := time.Now().Unix()
		Eventually(ctx, func() int64 { return time.Now().Unix() }).
			Should(BeNumerically(">", begun), "what a tenant made in the second in which a name is written counts as made later (DIST-D93)")
	}
	Expect(f.Admin().Create(ctx, rd)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, rd) })
}

func (f *field) change(ctx context.Context, changes ...change) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		rd := f.read(ctx)
		for _, c := range changes {
			c(rd)
		}
		return f.Admin().Update(ctx, rd)
	})).To(Succeed())
}

func (f *field) remove(ctx context.Context, options ...client.DeleteOption) {
	GinkgoHelper()
	Expect(f.Admin().Delete(ctx, f.read(ctx), options...)).To(Succeed())
}

func (f *field) read(ctx context.Context) *v1alpha1.ResourceDistribution {
	GinkgoHelper()
	rd := &v1alpha1.ResourceDistribution{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.id}, rd)).To(Succeed())
	return rd
}

// attempt changes the ResourceDistribution as a user, by dry run, and returns the API server's error. The operator may write its status
// at the same time: after a conflict, attempt reads it again.
func (f *field) attempt(ctx context.Context, user string, changes ...change) error {
	GinkgoHelper()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		rd := f.read(ctx)
		for _, c := range changes {
			c(rd)
		}
		return f.As(user).Update(ctx, rd, client.DryRunAll)
	})
}

// gone reports whether the API server answers that an object does not exist.
func (f *field) gone(ctx context.Context, object client.Object) (bool, error) {
	err := f.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// says reads the condition Ready as "status/reason"; "nothing yet" if the operator has not reported on the newest spec.
func (f *field) says(ctx context.Context) string {
	rd := &v1alpha1.ResourceDistribution{}
	if err := f.Admin().Get(ctx, client.ObjectKey{Name: f.id}, rd); err != nil {
		return err.Error()
	}
	return whatIsSaid(rd)
}

func whatIsSaid(rd *v1alpha1.ResourceDistribution) string {
	ready := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || rd.Status.ObservedGeneration != rd.Generation {
		return "nothing yet"
	}
	return string(ready.Status) + "/" + ready.Reason
}

// becomes waits until the condition Ready is want, as "status/reason", and returns the object.
func (f *field) becomes(ctx context.Context, want string) (rd *v1alpha1.ResourceDistribution) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string {
		rd = f.read(ctx)
		return whatIsSaid(rd)
	}).Should(Equal(want), f.explain)
	return rd
}

// ends waits until the condition Ready is want, as "status/reason", and every copy has been tried. The operator reports a failure, or a
// name without a namespace, before it writes the other copies.
func (f *field) ends(ctx context.Context, want string) (rd *v1alpha1.ResourceDistribution) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string {
		rd = f.read(ctx)
		if s := rd.Status; s.Missing+s.Outdated > 0 {
			return fmt.Sprintf("%d missing, %d outdated", s.Missing, s.Outdated)
		}
		return whatIsSaid(rd)
	}).Should(Equal(want), f.explain)
	return rd
}

// explain is the text of a failed assertion: the object's status and the operator's log.
func (f *field) explain() string {
	rd := &v1alpha1.ResourceDistribution{}
	_ = f.Admin().Get(context.Background(), client.ObjectKey{Name: f.id}, rd)
	status, _ := json.MarshalIndent(rd.Status, "", "  ")
	var log []string
	for line := range strings.Lines(f.Operator.Log()) {
		if strings.Contains(line, "distribution") {
			log = append(log, line)
		}
	}
	return fmt.Sprintf("status:\n%s\nthe operator's log:\n%s", status, strings.Join(log[max(0, len(log)-20):], ""))
}

// at is the Secret of the case's name in a namespace; nil if there is none.
func (f *field) at(ctx context.Context, namespace string) *corev1.Secret {
	GinkgoHelper()
	s := &corev1.Secret{}
	err := f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.id}, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return s
}

// data are the data of the case's Secret in a namespace, such as "v=1"; "" if there is none, and the error if the read fails.
func (f *field) data(ctx context.Context, namespace string) string {
	s := &corev1.Secret{}
	switch err := f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.id}, s); {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return err.Error()
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		texts = append(texts, key+"="+string(s.Data[key]))
	}
	return strings.Join(texts, " ")
}

// distributed waits until the namespaces have a copy with these data.
func (f *field) distributed(ctx context.Context, data string, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Eventually(ctx, f.data).WithArguments(namespace).Should(Equal(data), func() string { return namespace + " " + f.explain() })
	}
}

func (f *field) absent(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Eventually(ctx, f.data).WithArguments(namespace).Should(BeEmpty(), func() string { return namespace + " " + f.explain() })
	}
}

// obstacle makes a Secret with the case's name that is not a copy.
func (f *field) obstacle(ctx context.Context, namespace, value string, edits ...func(*corev1.Secret)) *corev1.Secret {
	GinkgoHelper()
	s := build.Secret(namespace, f.id, value)
	for _, edit := range edits {
		edit(s)
	}
	Expect(f.Admin().Create(ctx, s)).To(Succeed())
	return s
}

// untouched checks that a Secret was neither changed nor replaced.
func (f *field) untouched(ctx context.Context, was *corev1.Secret) {
	GinkgoHelper()
	is := f.at(ctx, was.Namespace)
	Expect(is).NotTo(BeNil())
	Expect([]string{string(is.UID), is.ResourceVersion}).To(Equal([]string{string(was.UID), was.ResourceVersion}))
}

// edit changes the Secret of the case in a namespace as a user.
func (f *field) edit(ctx context.Context, user, namespace string, edit func(*corev1.Secret)) error {
	GinkgoHelper()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s := f.at(ctx, namespace)
		Expect(s).NotTo(BeNil())
		edit(s)
		return f.As(user).Update(ctx, s)
	})
}

func setting(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

// requests are the operator's requests about the case's objects since a mark, as "verb resource/subresource", with their numbers.
func (f *field) requests(ctx context.Context, since audit.Position) map[string]int {
	GinkgoHelper()
	all, err := f.Requests(ctx, since)
	Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for _, r := range all {
		mine := r.Name == f.id || strings.HasPrefix(r.Namespace, f.id) || strings.Contains(r.URI, f.id)
		if r.User != controlplane.Operator || !mine || r.Resource == "events" || r.Resource == "namespaces" {
			continue
		}
		found[r.Verb+" "+strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")]++
	}
	return found
}

// rests waits until the operator stops sending requests about the case, and checks that it sends none for a while. Lists and watches of
// Secrets don't count. It waits first, because a status is written after the change that it reports.
func (f *field) rests(ctx context.Context) {
	GinkgoHelper()
	const pause = 2500 * time.Millisecond // longer than the operator waits between two statuses
	asked := func(since audit.Position) map[string]int {
		GinkgoHelper()
		found := f.requests(ctx, since)
		maps.DeleteFunc(found, func(what string, _ int) bool { return what == "list secrets" || what == "watch secrets" })
		return found
	}
	Eventually(ctx, func() map[string]int {
		mark := f.Mark(ctx)
		time.Sleep(pause)
		return asked(mark)
	}).Should(BeEmpty(), f.explain)
	mark := f.Mark(ctx)
	Consistently(ctx, func() map[string]int { return asked(mark) }).WithTimeout(test.Quiet(soon)).Should(BeEmpty(), f.explain)
}

// conflicts are the conflicting namespaces, as name:reason.
func conflicts(rd *v1alpha1.ResourceDistribution) []string {
	var all []string
	for _, one := range rd.Status.ConflictingNamespaces {
		all = append(all, one.Name+":"+string(one.Reason))
	}
	return all
}

func (f *field) uid(ctx context.Context, namespace string) types.UID {
	GinkgoHelper()
	n := &corev1.Namespace{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: namespace}, n)).To(Succeed())
	return n.UID
}
