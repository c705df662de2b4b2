package apianswer

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/warren-tenancy/warren/internal/text"
)

// mostRefusal bounds how much of the API server's message is kept, in bytes; a condition takes 32,768.
const mostRefusal = 1024

// Refusals remember which request the API server refused, by a key that the caller chooses, so that the same request is not sent
// again too early: one second after the first refusal, then twice as long each time, up to a limit. A change of the message, or of
// the status that shows it, makes no difference. The zero value remembers none.
type Refusals struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]refusal
}

// refusal is the last refusal of one request.
type refusal struct {
	request uint64
	text    string
	tries   int
	retryAt time.Time
}

// Of returns the API server's message when it last refused the request of key, or "".
func (r *Refusals) Of(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key].text
}

// Explain returns that message, and when the request is sent again, for the object whose spec decides about it.
func (r *Refusals) Explain(key string, retryMax time.Duration, object string) string {
	return r.Of(key) + "; the operator tries again within " + duration.HumanDuration(retryMax) + ", and at once when the spec of this " + object +
		" changes or it is made again"
}

// Wait returns how long the same request of key must wait; 0 for a request that differs from the refused one.
func (r *Refusals) Wait(key string, request uint64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byKey[key]; ok && last.request == request {
		return max(0, time.Until(last.retryAt))
	}
	return 0
}

// Note remembers a refusal. It returns after which time the request may be sent again, retryMax at most, and whether the message is
// new.
func (r *Refusals) Note(key string, request uint64, err error, retryMax time.Duration) (again time.Duration, news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.byKey[key]
	now := refusal{request: request, text: text.Cut(err.Error(), mostRefusal)}
	if known && last.request == request {
		now.tries = last.tries + 1
	}
	again = min(time.Second<<min(now.tries, 10), retryMax)
	now.retryAt = time.Now().Add(again)
	if r.byKey == nil {
		r.byKey = map[string]refusal{}
	}
	r.byKey[key] = now
	return again, last.text != now.text
}

// Clear forgets the refusal of key and says whether there was one.
func (r *Refusals) Clear(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.byKey[key]
	delete(r.byKey, key)
	return known
}

// RequestOf returns a hash of the parts of a request, by which Refusals compare requests. The parts must be encodable as JSON.
func RequestOf(parts ...any) uint64 {
	hash := fnv.New64a()
	_ = json.NewEncoder(hash).Encode(parts)
	return hash.Sum64()
}
