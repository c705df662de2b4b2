package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// leases stands in for the API server: it keeps one Lease, and takes a write only of the version that it has.
type leases struct {
	mu    sync.Mutex // guards the fields below
	lease *coordinationv1.Lease
	// refuses says that every write is answered by 500.
	refuses bool
	// renews says that another process renews the Lease before each read.
	renews        bool
	reads, writes int
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		l.reads++
		if l.renews {
			l.nextVersion()
		}
		if l.lease == nil {
			answer(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(l.lease)
		return
	}
	l.writes++
	sent := &coordinationv1.Lease{}
	switch err := json.NewDecoder(r.Body).Decode(sent); {
	case err != nil:
		answer(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	case l.refuses:
		answer(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case l.lease != nil && sent.ResourceVersion != l.lease.ResourceVersion:
		answer(w, http.StatusConflict, metav1.StatusReasonConflict)
	default:
		sent.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		if l.lease != nil {
			sent.ResourceVersion = l.lease.ResourceVersion
		}
		l.lease = sent
		l.nextVersion()
		_ = json.NewEncoder(w).Encode(l.lease)
	}
}

// nextVersion gives the Lease its next version. The caller holds mu.
func (l *leases) nextVersion() {
	version, _ := strconv.Atoi(l.lease.ResourceVersion)
	l.lease.ResourceVersion = strconv.Itoa(version + 1)
}

func answer(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code)}) //nolint:gosec // a status of HTTP
}

func (l *leases) change(do func(*leases)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l)
}

// foreign is a Lease that another process holds.
func foreign(seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "exporter", ResourceVersion: "1"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("another"), LeaseDurationSeconds: &seconds, LeaseTransitions: ptr.To(int32(3))}}
}

// election is an Election of a process before the server. Its times are long, so that a slow machine loses no Lease, unless the case
// shortens them.
func election(t *testing.T, server *leases, identity string) *apiserver.Election {
	t.Helper()
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	client, err := apiserver.NewClient(&rest.Config{Host: at.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &apiserver.Election{Client: client, Namespace: "warren-system", Name: "exporter", Identity: identity,
		Timing: apiserver.ElectionTiming{Duration: 15 * time.Minute, Deadline: 10 * time.Minute, Retry: 10 * time.Millisecond}}
}

func TestElection(t *testing.T) {
	t.Run("BILL-76 of two processes one leads, and the other when that has ended", func(t *testing.T) {
		server := &leases{}
		first, second := election(t, server, "first"), election(t, server, "second")
		ctx, end := context.WithCancel(t.Context())
		leads, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- first.Lead(ctx, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
		}()
		<-leads
		var firstEnds atomic.Bool
		waits := make(chan error, 1)
		go func() {
			waits <- second.Lead(t.Context(), func(context.Context) error {
				if !firstEnds.Load() {
					return errors.New("both led")
				}
				return nil
			})
		}()
		server.change(func(l *leases) { l.reads = 0 })
		waitFor(t, server, func(l *leases) bool { return l.reads > 20 })
		firstEnds.Store(true)
		end()
		if err := errors.Join(<-ended, <-waits); err != nil {
			t.Error(err)
		}
		server.change(func(l *leases) {
			if holder, turns := *l.lease.Spec.HolderIdentity, *l.lease.Spec.LeaseTransitions; holder != "" || turns != 1 {
				t.Errorf("the Lease is held by %q after %d changes of the holder", holder, turns)
			}
		})
	})
	t.Run("BILL-76 a Lease that nobody renews is taken", func(t *testing.T) {
		server := &leases{lease: foreign(1)}
		if err := election(t, server, "we").Lead(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if turns := *server.lease.Spec.LeaseTransitions; turns != 4 {
			t.Errorf("%d changes of the holder", turns)
		}
	})
	t.Run("BILL-76 a Lease that another process renews is left to it", func(t *testing.T) {
		server := &leases{lease: foreign(0), renews: true} // it lasts no time, so that only its renewals hold others off
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- election(t, server, "we").Lead(ctx, func(context.Context) error { return errors.New("we led") })
		}()
		waitFor(t, server, func(l *leases) bool { return l.reads > 50 })
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if server.writes != 0 {
			t.Errorf("%d writes", server.writes)
		}
	})
}

func TestElectionLost(t *testing.T) {
	for name, happens := range map[string]func(*leases){
		"by another's write":     func(l *leases) { l.lease = foreign(15) },
		"as no write is taken":   func(l *leases) { l.refuses = true },
		"as somebody deleted it": func(l *leases) { l.lease, l.refuses = nil, true },
	} {
		t.Run("BILL-76 work ends where the Lease is lost "+name, func(t *testing.T) {
			server := &leases{}
			e := election(t, server, "we")
			e.Timing.Deadline = 300 * time.Millisecond
			err := e.Lead(t.Context(), func(ctx context.Context) error {
				server.change(happens)
				<-ctx.Done()
				return nil
			})
			if !errors.Is(err, apiserver.ErrLeaseLost) {
				t.Error(err)
			}
		})
	}
}

// waitFor waits until the server's state is as told.
func waitFor(t *testing.T, server *leases, reached func(*leases) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		done := false
		server.change(func(l *leases) { done = reached(l) })
		if done {
			return
		}
	}
	t.Fatal("the processes ask for the Lease no more")
}
