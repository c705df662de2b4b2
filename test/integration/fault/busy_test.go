package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/gate"
)

// busy is an API server that refuses all writes of the operator with 429 before the time until. It counts the requests.
type busy struct {
	until      time.Time
	retryAfter string

	mu       sync.Mutex // guards what follows
	requests int
	refused  map[string]time.Time // by write, when it was refused last
	hasty    []string             // writes that were repeated within the second that Retry-After asks to wait
}

// decide is the gate's script. It leaves out Leases, which are renewed in any case, and watches, which don't react to a refusal.
func (b *busy) decide(r gate.Request) gate.Fault {
	if r.URL.Query().Get("watch") == "true" || strings.Contains(r.URL.Path, "/leases") {
		return gate.Fault{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if now := time.Now(); isWrite(r.Request) && now.Before(b.until) {
		write := r.Method + " " + r.URL.Path + " " + string(r.Body)
		if last, known := b.refused[write]; known && b.retryAfter != "" && now.Sub(last) < time.Second {
			b.hasty = append(b.hasty, fmt.Sprintf("%s after %s", write, now.Sub(last)))
		}
		b.refused[write] = now
		return gate.Fault{Code: http.StatusTooManyRequests, RetryAfter: b.retryAfter}
	}
	return gate.Fault{}
}

// playBusily plays all stories of endings at once, and checks that each ends as it does without a fault. The API server is busy from the
// first step on.
func (s *stage) playBusily(ctx context.Context, key string, endings map[string]ending, lasts time.Duration, retryAfter string) *busy {
	GinkgoHelper()
	var given, all sync.WaitGroup
	begins, b := make(chan struct{}), &busy{retryAfter: retryAfter, refused: map[string]time.Time{}}
	for _, story := range stories {
		calm, wanted := endings[story.id]
		if !wanted {
			continue
		}
		given.Add(1)
		all.Go(func() {
			defer GinkgoRecover()
			scene := s.scene(strings.ToLower(story.id) + "-" + key)
			scene.withoutClaims = len(story.goes) > 0
			func() {
				defer given.Done()
				story.given(ctx, scene)
			}()
			<-begins
			story.play(ctx, scene)
			scene.endsAs(ctx, calm)
		})
	}
	given.Wait()
	s.rests(ctx)
	b.until = time.Now().Add(lasts)
	s.Script(b.decide)
	close(begins)
	all.Wait()
	s.Script(nil)
	return b
}

var _ = Describe("an operator whose API server is too busy to write", func() {
	It("FLT-F05 while writes get 429 for 30 s (`make test-long`), none is repeated earlier than Retry-After allows; with or without it, "+
		"requests at most double, and stories end as without", func(ctx SpecContext) {
		skipUnlessLong("two outages of half a minute")
		DeferCleanup(guarded.Script, (func(gate.Request) gate.Fault)(nil))
		endings := rehearseAll(ctx, guarded, "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8")
		calm := guarded.playBusily(ctx, "calm-f05", endings, 0, "")
		for key, retryAfter := range map[string]string{"f05a": "1", "f05b": ""} {
			b := guarded.playBusily(ctx, key, endings, 30*time.Second, retryAfter)
			AddReportEntry("FLT-F05", fmt.Sprintf("Retry-After %q: %d writes refused, %d requests, %d without the fault", retryAfter,
				len(b.refused), b.requests, calm.requests))
			Expect(b.refused).NotTo(BeEmpty())
			Expect(b.hasty).To(BeEmpty())
			Expect(b.requests).To(BeNumerically("<=", 2*calm.requests))
		}
	})
})
