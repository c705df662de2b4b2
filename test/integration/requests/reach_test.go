package requests_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// seen is the version of an object at which a watch first showed something.
type seen map[string]string

// follow notes the first version at which each step of a grant shows, until its RoleBinding does.
func (s seen) follow(uid string, events <-chan watch.Event) {
	for event := range events {
		object, is := event.Object.(client.Object)
		if !is {
			continue
		}
		step := ""
		switch o := object.(type) {
		case *v1alpha1.SudoRequest:
			if string(o.UID) == uid && o.Status.StartTime != nil {
				step = "startTime"
			}
		case *batchv1.Job:
			if o.Name == uid {
				step = "timer"
				if o.Status.CompletionTime != nil {
					step = "Complete"
				}
			}
		case *rbacv1.Role, *rbacv1.RoleBinding:
			if object.GetName() == uid {
				step = fmt.Sprintf("%T", o)
			}
		}
		if _, known := s[step]; step != "" && !known {
			s[step] = object.GetResourceVersion()
		}
	}
}

var _ = Describe("where a grant reaches", func() {
	It("REQ-G2 writes startTime, then the timer, and what gives the right only once the timer runs", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.ask(ctx, "10m")
		all := make(chan watch.Event, 1000)
		for _, list := range []client.ObjectList{&v1alpha1.SudoRequestList{}, &batchv1.JobList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
			namespace := v1alpha1.SudoNamespace
			if _, is := list.(*v1alpha1.SudoRequestList); is {
				namespace = t.root
			}
			events, err := t.Admin().Watch(ctx, list, client.InNamespace(namespace))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(events.Stop)
			go func() {
				for event := range events.ResultChan() {
					all <- event
				}
			}()
		}
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonGranted)
		versions := seen{}
		Eventually(ctx, func() int {
			some := make(chan watch.Event, len(all))
			for range len(all) {
				some <- <-all
			}
			close(some)
			versions.follow(string(r.UID), some)
			return len(versions)
		}).Should(Equal(5))
		steps := []string{"startTime", "timer", "Complete", "*v1.Role", "*v1.RoleBinding"}
		for i := range steps[1:] {
			order, err := resourceversion.CompareResourceVersion(versions[steps[i]], versions[steps[i+1]])
			Expect(err).NotTo(HaveOccurred())
			Expect(order).To(Equal(-1), "%s comes before %s", steps[i], steps[i+1])
		}
	})

	It("REQ-G10 leaves the right of one grant when another one of the same person is ended", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		first, second := t.granted(ctx, "10m"), t.granted(ctx, "1m")
		Expect(t.decide(ctx, first, "carol", v1alpha1.SudoEnd)).To(Succeed())
		t.says(ctx, first, v1alpha1.ReasonEnded)
		end := t.read(ctx, second).Status.EndTime.Time
		for time.Now().Before(end.Add(-2 * time.Second)) {
			Expect(t.try(ctx, t.root)()).To(Succeed(), "until %s", end)
			time.Sleep(time.Second)
		}
		t.denied(ctx)
		Expect(time.Now()).To(BeTemporally(">", end.Add(-2*time.Second)))
	})

	It("REQ-G12 reaches a namespace that joins the tree, and not one that has left it", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		t.granted(ctx, "10m")
		web := t.root + "-web"
		t.Create(ctx, build.SubNamespace(t.root, web))
		Eventually(ctx, t.try(ctx, web)).Should(Succeed())
		t.Delete(ctx, build.SubNamespace(t.root, web))
		Eventually(ctx, t.try(ctx, web)).Should(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(t.try(ctx, t.root)()).To(Succeed())
	})

	It("REQ-E11 lets a watch that is open at the end go on, and refuses each new request", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "10m")
		events, err := t.temporary("carol").Watch(ctx, &corev1.SecretList{}, client.InNamespace(t.root))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(events.Stop)
		Expect(t.decide(ctx, r, "mia", v1alpha1.SudoEnd)).To(Succeed())
		t.denied(ctx)
		t.Create(ctx, build.Secret(t.root, "late", "x"))
		Eventually(ctx, func() string {
			select {
			case event := <-events.ResultChan():
				return event.Object.(client.Object).GetName()
			default:
				return ""
			}
		}).Should(Equal("late"))
		_, err = t.temporary("carol").Watch(ctx, &corev1.SecretList{}, client.InNamespace(t.root))
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
	})

	It("REQ-S5 counts no approval of somebody whom a sudoer let into the root", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r, bob := t.ask(ctx, "10m"), t.Sudo("bob", t.root)
		let := build.RoleBinding(t.root, "zed", "cluster-admin", build.RBACUser("zed"))
		Eventually(ctx, func() error { return bob.Create(ctx, let) }).Should(Succeed())
		Eventually(ctx, func() error { return t.decide(ctx, r, "zed", v1alpha1.SudoApprove) }).Should(Succeed())
		t.says(ctx, r, v1alpha1.ReasonPending)
		Consistently(ctx, t.reason(ctx, r), 2*time.Second).Should(HavePrefix("Pending"))
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-S8 gives the temporary sudoer to nobody without a grant, and a token of it to nobody", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		t.granted(ctx, "10m")
		for _, user := range []string{"eve", "alice", "mia", "bob"} {
			err := t.temporary(user).List(ctx, &corev1.SecretList{}, client.InNamespace(t.root))
			Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"), user)
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SudoNamespace, Name: t.root}}
			Expect(t.As(user).SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})).To(
				MatchError(apierrors.IsForbidden, "is a 403"), user)
		}
	})

	It("REQ-H1 shows whoever may read a root who asked, why, and until when", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "10m")
		for _, user := range []string{"carol", "mia", "alice"} {
			var out string
			Eventually(ctx, func() int {
				var code int
				out, _, code = t.Kubectl(ctx, user, "get", "sudoreq", "-n", t.root)
				return code
			}).Should(Equal(0), user)
			Expect(out).To(MatchRegexp(`NAME +USER +FOR +STATE +ENDS +REASON +AGE\n`+r.Name+
				` +carol +10m +Granted +\S+ +Restore the ledger +`), user)
		}
		for _, user := range []string{"dave", "eve"} {
			_, problem, code := t.Kubectl(ctx, user, "get", "sudoreq", "-n", t.root)
			Expect(code).NotTo(Equal(0), user)
			Expect(problem).To(ContainSubstring("forbidden"), user)
		}
	})

	It("REQ-H3 deletes a root with fifty requests", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		for range 50 {
			t.Create(ctx, request(t.root, "admin"))
		}
		t.granted(ctx, "10m")
		t.Delete(ctx, &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: t.root}})
		t.Gone(ctx, build.Namespace(t.root))
		t.denied(ctx)
	})
})
