package attack_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
)

// desk is a tenant of the control plane running in which rita and group ledger-oncall ask, and lena, lou and mia decide.
type desk struct {
	*fixture
	name string
}

const deskSpec = `{spec: {managers: [{kind: User, name: mia}], limits: {subNamespaces: 5, depth: 2}, sudoRequests: {
  eligible: [{kind: User, name: rita}, {kind: Group, name: ledger-oncall}],
  approvers: [{kind: User, name: lena}, {kind: Group, name: ledger-leads}]}}}`

// openDesk makes a tenant, and waits until people may ask there.
func openDesk(ctx context.Context, name string) *desk {
	GinkgoHelper()
	d := &desk{running, name}
	d.given(ctx, admin, create("lnamespace "+name, deskSpec))
	made := time.Now()
	for _, binding := range []string{"requesters", "approvers", "sudo-requests"} {
		d.appears(ctx, "rolebinding "+name+"/warren:"+binding)
	}
	Eventually(ctx, time.Now).Should(BeTemporally(">", made.Add(2*time.Second)))
	return d
}

// asks makes a request of rita, and returns where it is and its UID.
func (d *desk) asks(ctx context.Context, name string, more ...string) (place, uid string) {
	GinkgoHelper()
	place = d.name + "/" + name
	d.given(ctx, rita, create("sudorequest "+place, asking("rita", more...)))
	return place, string(d.object(ctx, "sudorequest "+place).GetUID())
}

func (f *fixture) object(ctx context.Context, target string) *unstructured.Unstructured {
	GinkgoHelper()
	u := object(target, "")
	Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed(), target)
	return u
}

// become reads Secrets as the temporary sudoer.
func (d *desk) become(ctx context.Context) error {
	return list("secret "+d.name+"/*").send(ctx, d.caller(becoming(rita, temporarySudoer(d.name))))
}

func (d *desk) granted(ctx context.Context, place string) {
	GinkgoHelper()
	d.stateIs(ctx, place, "Granted")
	Eventually(ctx, d.become).Should(Succeed())
}

func (d *desk) denied(ctx context.Context, within time.Duration) {
	GinkgoHelper()
	Eventually(ctx, d.become).WithTimeout(within).Should(MatchError(apierrors.IsForbidden, "is a 403"))
}

// together sends requests at the same moment, and returns how many succeeded.
func (f *fixture) together(sends ...func() error) (succeeded int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, send := range sends {
		wg.Go(func() {
			if err := send(); err == nil {
				mu.Lock()
				succeeded++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return succeeded
}

func (f *fixture) sends(ctx context.Context, by actor, r request) func() error {
	c := f.caller(by)
	return func() error { return r.send(ctx, c) }
}

// theJob is a Job that a cluster admin makes under the name of a timer.
func theJob(uid string, fields ...string) request {
	return create("job warren-sudo/"+uid, timer(fields...))
}

var _ = Describe("sudo on request, with the operator running", func() {
	It("REQ-X50 decisions of somebody with all verbs in the root who is on no list count for nothing", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-zed")
		d.given(ctx, admin, create("rolebinding desk-zed/zeds", bindingTo("cluster-admin", "zed")))
		place, _ := d.asks(ctx, "one")
		d.given(ctx, zed, decide(place, "zed", "Approve"), decide(place, "zed", "Deny"), decide(place, "zed", "End"))
		d.stateIs(ctx, place, "Pending")
		Consistently(ctx, d.requestState).WithArguments(place).WithTimeout(test.Quiet(2 * time.Second)).Should(Equal("Pending"))
		d.given(ctx, lou, decide(place, "lou", "Approve")) // without the group by which he may
		Consistently(ctx, d.requestState).WithArguments(place).WithTimeout(test.Quiet(2 * time.Second)).Should(Equal("Pending"))
		d.given(ctx, mia, decide(place, "mia", "Approve")) // a manager only denies and ends where there are approvers
		Consistently(ctx, d.requestState).WithArguments(place).WithTimeout(test.Quiet(2 * time.Second)).Should(Equal("Pending"))
		d.given(ctx, lena, decide(place, "lena", "Approve"))
		d.granted(ctx, place)
		d.given(ctx, zed, create("sudorequest desk-zed/own", asking("zed")))
		d.stateIs(ctx, "desk-zed/own", "NotEligible")
	})

	It("REQ-X51 an approval and a denial at the same moment are both kept, and nobody has sudo", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-race")
		for i := range 3 {
			place, uid := d.asks(ctx, fmt.Sprint("r", i))
			both := d.together(d.sends(ctx, lena, decide(place, "lena", "Approve")),
				d.sends(ctx, lou, decide(place, "lou", "Deny", "group: ledger-leads")))
			Expect(both).To(Equal(2))
			d.stateIs(ctx, place, "Denied")
			d.gone(ctx, "rolebinding warren-sudo/"+uid)
			d.gone(ctx, "job warren-sudo/"+uid)
		}
		d.denied(ctx, 2*time.Second)
	})

	It("REQ-X52 somebody who leaves the list at the moment of the approval has no sudo", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-left")
		place, uid := d.asks(ctx, "one")
		d.together(d.sends(ctx, lena, decide(place, "lena", "Approve")),
			d.sends(ctx, mia, merge("lnamespace desk-left", `{spec: {sudoRequests: {eligible: [{kind: User, name: rob}]}}}`)))
		d.stateIs(ctx, place, "NotEligible")
		d.denied(ctx, 2*time.Second)
		d.gone(ctx, "job warren-sudo/"+uid)
	})

	It("REQ-X53 a request that is deleted and made again under its name begins without decisions, and the right of the first one ends",
		func(ctx SpecContext) {
			d := openDesk(ctx, "desk-again")
			place, uid := d.asks(ctx, "one")
			d.given(ctx, lena, decide(place, "lena", "Approve"))
			d.granted(ctx, place)
			d.given(ctx, admin, remove("sudorequest "+place))
			d.denied(ctx, 3*time.Second)
			_, again := d.asks(ctx, "one")
			Expect(again).NotTo(Equal(uid))
			d.stateIs(ctx, place, "Pending")
			d.denied(ctx, time.Second)
		})

	It("REQ-X54 with an LNamespace its rights end, and a new one of the same name begins without requests", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-new")
		place, _ := d.asks(ctx, "one")
		d.given(ctx, lena, decide(place, "lena", "Approve"))
		d.granted(ctx, place)
		d.given(ctx, admin, remove("lnamespace desk-new"))
		d.denied(ctx, 3*time.Second)
		d.gone(ctx, "lnamespace desk-new")
		d.gone(ctx, "namespace desk-new")
		d = openDesk(ctx, "desk-new")
		Expect(d.look(ctx, "sudorequest "+place)).To(BeNil())
		d.denied(ctx, time.Second)
	})

	It("REQ-X55 a Job that lives long and takes the name of a timer again and again gives no longer right", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-forged")
		place, uid := d.asks(ctx, "one")
		racing, stop := context.WithCancel(ctx)
		defer stop()
		for range 2 {
			go func() {
				for racing.Err() == nil {
					_ = theJob(uid, "ttlSecondsAfterFinished: 2000000000").send(racing, d.caller(admin))
				}
			}()
		}
		d.given(ctx, lena, decide(place, "lena", "Approve"))
		Consistently(ctx, func(ctx context.Context) error {
			u := object("rolebinding warren-sudo/"+uid, "")
			if err := d.Admin().Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return client.IgnoreNotFound(err)
			}
			owner := d.object(ctx, "job warren-sudo/"+uid)
			if ttl, _, _ := unstructured.NestedInt64(owner.Object, "spec", "ttlSecondsAfterFinished"); ttl > 7200 {
				return fmt.Errorf("the right lasts %d s", ttl)
			}
			return nil
		}).WithTimeout(5 * time.Second).WithPolling(20 * time.Millisecond).Should(Succeed())
		stop()
		d.granted(ctx, place)
		job := d.object(ctx, "job warren-sudo/"+uid)
		Expect(job.GetOwnerReferences()).To(HaveLen(1))
	})

	It("REQ-X56 the operator ends at its time a right whose timer a cluster admin has lengthened", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-longer")
		d.given(ctx, rita, create("sudorequest desk-longer/one", strings.Replace(asking("rita"), "2h", "1m", 1)))
		d.given(ctx, lena, decide("desk-longer/one", "lena", "Approve"))
		d.granted(ctx, "desk-longer/one")
		one := d.object(ctx, "sudorequest desk-longer/one")
		d.given(ctx, admin, merge("job warren-sudo/"+string(one.GetUID()), `{spec: {ttlSecondsAfterFinished: 86400}}`))
		d.denied(ctx, 80*time.Second)
		d.stateIs(ctx, "desk-longer/one", "TimeOver")
	})

	It("REQ-X57 thirty requests of one person at once keep nobody else waiting, and three stay open", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-many")
		var all []func() error
		for i := range 30 {
			all = append(all, d.sends(ctx, rita, create(fmt.Sprint("sudorequest desk-many/r", i), asking("rita"))))
		}
		d.together(all...)
		d.given(ctx, rob, create("sudorequest desk-many/robs", asking("rob", "group: ledger-oncall")))
		d.given(ctx, lena, decide("desk-many/robs", "lena", "Approve"))
		Eventually(ctx, d.requestState).WithArguments("desk-many/robs").WithTimeout(10 * time.Second).Should(Equal("Granted"))
		Eventually(ctx, func(ctx context.Context) (open int, err error) {
			requests := &v1alpha1.SudoRequestList{}
			err = d.Admin().List(ctx, requests, client.InNamespace("desk-many"))
			for _, r := range requests.Items {
				if len(r.Status.Conditions) != 1 || r.Status.Conditions[0].Reason == "Pending" {
					open++
				}
			}
			return open, err
		}).Should(Equal(3))
	})

	It("REQ-X58 a cluster admin ends a right by its RoleBinding, and whoever only reads it can't", func(ctx SpecContext) {
		d := openDesk(ctx, "desk-ended")
		place, uid := d.asks(ctx, "one")
		d.given(ctx, lena, decide(place, "lena", "Approve"))
		d.granted(ctx, place)
		Expect(remove("rolebinding warren-sudo/"+uid).send(ctx, d.caller(lena))).NotTo(Succeed())
		Expect(remove("rolebinding warren-sudo/"+uid).send(ctx, d.caller(clara))).To(Succeed())
		d.denied(ctx, 2*time.Second)
		d.stateIs(ctx, place, "Ended")
		Expect(d.look(ctx, "job warren-sudo/"+uid)).To(BeNil())
	})

	It("REQ-X59 the temporary sudoer deletes Events of the root, but not the request, and not the Warning on the LNamespace",
		func(ctx SpecContext) {
			d := openDesk(ctx, "desk-glass")
			d.given(ctx, mia, merge("lnamespace desk-glass", `{spec: {sudoRequests: {breakGlass: true}}}`))
			place, _ := d.asks(ctx, "one", "breakGlass: true")
			d.granted(ctx, place)
			warned := func(ctx context.Context) ([]string, error) {
				return d.eventsOf(ctx, "default", "desk-glass", v1alpha1.ReasonBreakGlass)
			}
			Eventually(ctx, warned).ShouldNot(BeEmpty())
			temporary := becoming(rita, temporarySudoer("desk-glass"))
			d.given(ctx, temporary, sweep("event desk-glass/*"))
			Expect(sweep("sudorequest desk-glass/*").send(ctx, d.caller(temporary))).To(MatchError(ContainSubstring("kept as a record")))
			Expect(sweep("event default/*").send(ctx, d.caller(temporary))).NotTo(Succeed())
			Expect(warned(ctx)).NotTo(BeEmpty())
			Expect(d.look(ctx, "sudorequest "+place)).NotTo(BeNil())
		})
})
