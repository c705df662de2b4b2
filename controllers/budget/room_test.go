package budget

import (
	"context"
	"maps"
	"math"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/warren-tenancy/warren/internal/budget"
)

var onePod = budget.Amounts{"pods": 1}

// showPods shows that namespace web has a share of pods, of which Kubernetes has counted so many.
func showPods(r *Reconciler, version string, spec, counted, used int64) {
	share := shareOf("1", version, used)
	share.Spec.Hard, share.Status.Hard = budget.Amounts{"pods": spec}.List(), budget.Amounts{"pods": counted}.List()
	r.changeShares(func(t shares) []shareChange { return listed(t.Show(share)) })
}

// askFor asks for room for a pod in namespace web, and returns how long the answer took.
func askFor(t *testing.T, r *Reconciler) time.Duration {
	t.Helper()
	start := time.Now()
	r.MakeRoom(t.Context(), "web", onePod)
	return time.Since(start)
}

func after(wait time.Duration, do func()) {
	go func() {
		time.Sleep(wait)
		do()
	}()
}

func TestMakeRoom(t *testing.T) {
	wants := func(t *testing.T, is, want time.Duration) {
		t.Helper()
		if is != want {
			t.Errorf("answered after %s, want %s", is, want)
		}
	}
	for name, run := range map[string]func(t *testing.T, r *Reconciler){
		"QUOTA-90 without a share, and within one, the answer comes at once": func(t *testing.T, r *Reconciler) {
			wants(t, askFor(t, r), 0)
			showPods(r, "1", 2, 2, 0)
			wants(t, askFor(t, r), 0)
			wants(t, askFor(t, r), 0)
		},
		"QUOTA-91 what was let through counts, until Kubernetes has counted it or 300 ms are over": func(t *testing.T, r *Reconciler) {
			passed := func(want int64) {
				t.Helper()
				if is := r.known.doors["web"].sumPassed(time.Now())["pods"]; is != want {
					t.Errorf("%d pods are on the way, want %d", is, want)
				}
			}
			showPods(r, "1", 3, 3, 1)
			wants(t, askFor(t, r), 0)
			passed(1)
			showPods(r, "2", 3, 3, 2)
			passed(0)
			wants(t, askFor(t, r), 0)
			passed(1)
			time.Sleep(passing + 1)
			passed(0)
		},
		"QUOTA-92 beyond the share, the tree is planned, and the answer comes once a raised share is counted": func(t *testing.T, r *Reconciler) {
			showPods(r, "1", 1, 1, 1)
			after(40*time.Millisecond, func() { showPods(r, "2", 9, 1, 1) })
			after(60*time.Millisecond, func() { showPods(r, "3", 9, 9, 1) })
			wants(t, askFor(t, r), 60*time.Millisecond+spreading)
			if is := r.known.refusals["web"].Requested; !maps.Equal(is, onePod) {
				t.Errorf("the plan is for %v, want %v", is, onePod)
			}
		},
		"QUOTA-93 without room the answer comes after half a second, or as soon as a plan finds that there is none": func(t *testing.T,
			r *Reconciler) {
			showPods(r, "1", 1, 1, 1)
			wants(t, askFor(t, r), roomPatience)
			wants(t, askFor(t, r), 0)
			time.Sleep(fullHolds + 1)
			start := time.Now()
			r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": 1, "count/pods": 1})
			r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": 1, "count/pods": 1})
			wants(t, time.Since(start), roomPatience) // the share has no count/pods
			time.Sleep(fullHolds + 1)
			full := &tree{rows: []budget.Row{{Namespace: "web", Spec: onePod, Used: onePod}},
				asked: map[string]budget.Refusal{"web": {Requested: onePod}}}
			after(30*time.Millisecond, func() { r.known.noteFull(full, time.Now()) })
			wants(t, askFor(t, r), 30*time.Millisecond)
		},
		"QUOTA-94 while a share is written, nobody passes, and the write waits for what has passed": func(t *testing.T, r *Reconciler) {
			showPods(r, "1", 9, 9, 0)
			wants(t, askFor(t, r), 0)
			after(15*time.Millisecond, func() { showPods(r, "2", 9, 9, 1) })
			start := time.Now()
			r.known.closeDoor(t.Context(), "web")
			wants(t, time.Since(start), 15*time.Millisecond+storing)
			after(25*time.Millisecond, func() { r.known.openDoor("web") })
			wants(t, askFor(t, r), 25*time.Millisecond)
		},
		"QUOTA-101 a forged review for less than nothing, or for more than any number, moves nothing": func(t *testing.T, r *Reconciler) {
			showPods(r, "1", 5, 5, 1)
			for _, amount := range []int64{-7, math.MinInt64, 0} {
				r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": amount})
			}
			go r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": math.MaxInt64})
			synctest.Wait()
			if d := r.known.doors["web"]; d != nil && len(d.passed) > 0 {
				t.Errorf("%v have passed", d.passed)
			}
			wants(t, askFor(t, r), 0)
			time.Sleep(roomPatience)
			synctest.Wait()
		},
		"QUOTA-95 of one namespace, 64 creations wait at once, and the next one is answered": func(t *testing.T, r *Reconciler) {
			showPods(r, "1", 1, 1, 1)
			for range mostWaiting {
				go r.MakeRoom(t.Context(), "web", onePod)
			}
			synctest.Wait()
			wants(t, askFor(t, r), 0)
			time.Sleep(roomPatience)
			synctest.Wait()
		},
		"QUOTA-116 what the share doesn't limit is not asked for; after a creation that got no room, the next one is answered at once": func(
			t *testing.T, r *Reconciler) {
			showPods(r, "1", 1, 1, 1)
			pod := budget.Amounts{"pods": 1, "count/pods": 1, "requests.cpu": math.MaxInt64}
			r.MakeRoom(t.Context(), "web", pod)
			if is := r.known.refusals["web"].Requested; !maps.Equal(is, onePod) {
				t.Errorf("the plan is for %v, want %v", is, onePod)
			}
			start := time.Now()
			r.MakeRoom(t.Context(), "web", pod)
			wants(t, time.Since(start), 0)
		},
		"QUOTA-117 while forged reviews pass of which nothing is counted, they hold no room, and a write waits for none": func(t *testing.T,
			r *Reconciler) {
			showPods(r, "1", 9, 9, 0)
			for range 10 {
				wants(t, askFor(t, r), 0)
				time.Sleep(passing / 2)
			}
			if is := r.known.doors["web"].sumPassed(time.Now()); len(is) > 0 {
				t.Errorf("%v are on the way", is)
			}
			start := time.Now()
			r.known.closeDoor(t.Context(), "web")
			wants(t, time.Since(start), 0)
			r.known.openDoor("web")
			wants(t, askFor(t, r), 0)
			showPods(r, "2", 9, 9, 1)
			wants(t, askFor(t, r), 0)
			if is := r.known.doors["web"].sumPassed(time.Now())["pods"]; is == 0 {
				t.Error("something was counted, and what has passed since counts for nothing")
			}
		},
		"QUOTA-118 an Event about a resource that the share doesn't limit is no refusal": func(t *testing.T, r *Reconciler) {
			showPods(r, "1", 1, 1, 1)
			r.TakeRefusal("web", budget.FormatRefusal(budget.Amounts{"count/widgets.example.com": 1}.List(), nil, nil))
			if is, refused := r.known.refusals["web"]; refused {
				t.Errorf("recorded %v", is.Requested)
			}
		},
		"QUOTA-119 while Kubernetes doesn't count a resource, what passes of it is not added up": func(t *testing.T, r *Reconciler) {
			share := shareOf("1", "1", 0)
			share.Spec.Hard = budget.Amounts{"pods": 5, "requests.memory": 1 << 40}.List()
			share.Status.Hard = budget.Amounts{"pods": 5}.List()
			r.changeShares(func(t shares) []shareChange { return listed(t.Show(share)) })
			r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": 1, "requests.memory": math.MaxInt64})
			time.Sleep(counting)
			r.MakeRoom(t.Context(), "web", budget.Amounts{"pods": 1, "requests.memory": math.MaxInt64})
			if is := r.known.doors["web"].sumPassed(time.Now()); !maps.Equal(is, onePod) {
				t.Errorf("%v are on the way, want %v", is, onePod)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
				close(r.begun)
				run(t, r)
			})
		})
	}
}

func TestAReplicaThatDoesNotLead(t *testing.T) {
	t.Run("QUOTA-96 a replica that doesn't lead asks the leader by one Event in 200 ms", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var sent []string
			api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					sent = append(sent, object.(*corev1.Event).Message)
					return nil
				}}).Build()
			r := New(Options{View: treeOfWeb(), Client: api, PatchNamespace: patchNothing})
			showPods(r, "1", 1, 1, 1)
			for range 5 {
				go r.MakeRoom(t.Context(), "web", onePod)
			}
			time.Sleep(servePause / 2)
			if len(sent) != 1 || !maps.Equal(budget.ParseRefusal(sent[0], onePod), onePod) {
				t.Errorf("sent %q, want one message about a pod", sent)
			}
			time.Sleep(roomPatience)
			synctest.Wait()
		})
	})
}
