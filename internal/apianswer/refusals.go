package apianswer

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/warren-tenancy/warren/internal/text"
)

// mostRefusal bounds how much of the API server's message is kept, in bytes; the message of a condition may have 32,768.
const mostRefusal = 1024

// Refusals remember which request the API server refused, by a key that the caller chooses, so that the same request is not sent again too
// early: one second after the first refusal, then twice as long each time, up to a limit. A new message does not shorten the wait, and
// neither does a change of the status that shows the message. The zero value is ready for use.
type Refusals struct {
	// Changed is called with a key when its message changes; the text is empty when the refusal is over. It may be nil.
	Changed func(key, text string)

	mu    sync.Mutex // guards byKey
	byKey map[string]refusal
}

// Attempt is one request, and the conditions under which it is sent.
type Attempt struct {
	// Key is what the request is about. Request is a hash, from RequestOf, of all that the API server judges; a request with another hash
	// need not wait.
	Key     string
	Request uint64
	// RetryMax caps the back-off after a refusal, unless the API server asks for a longer wait.
	RetryMax time.Duration
	// Outages makes any failure but "already exists" count as a refusal. For a failure that is no refusal by the server, such as an outage,
	// the back-off is OutageRetryMax at most.
	Outages bool
	Send    func() error
}

// refusal is the last refusal of one request.
type refusal struct {
	request uint64
	text    string
	tries   int
	retryAt time.Time
}

// Of returns the message of the last refusal for key; "" if there was none, or if the request has succeeded since.
func (r *Refusals) Of(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key].text
}

// Explain returns Of(key) and a sentence about when the operator sends the request again. object is the kind of the object whose spec
// decides about the request.
func (r *Refusals) Explain(key string, retryMax time.Duration, object string) string {
	return r.Of(key) + "; the operator tries again within " + duration.HumanDuration(retryMax) + ", and at once when this " + object +
		" is created again or its spec changes"
}

// Try sends the request, unless it must wait because the API server refused it before. again is how long it must wait; 0 if it was sent and
// not refused. err is a failure that counts as no refusal: always "already exists". Without Outages, it may also be a failure that is no
// refusal by the server, or a 404 or 409, which show that what the caller knows of the cluster is old.
func (r *Refusals) Try(a Attempt) (again time.Duration, err error) {
	if again = r.wait(a.Key, a.Request); again > 0 {
		return again, nil
	}
	err = a.Send()
	switch {
	case err == nil:
		r.Clear(a.Key)
		return 0, nil
	case apierrors.IsAlreadyExists(err), !a.Outages && (!IsRefusal(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err)):
		return 0, err
	case !IsRefusal(err):
		return r.note(a, err, min(a.RetryMax, OutageRetryMax)), nil
	}
	return r.note(a, err, a.RetryMax), nil
}

// wait returns how long the same request of key must wait; 0 for a request that differs from the refused one.
func (r *Refusals) wait(key string, request uint64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byKey[key]; ok && last.request == request {
		return max(0, time.Until(last.retryAt))
	}
	return 0
}

// note remembers a refusal. It returns after which time the request may be sent again.
func (r *Refusals) note(a Attempt, err error, retryMax time.Duration) (again time.Duration) {
	r.mu.Lock()
	last, known := r.byKey[a.Key]
	now := refusal{request: a.Request, text: text.Cut(err.Error(), mostRefusal)}
	if known && last.request == a.Request {
		now.tries = last.tries + 1
	}
	again = max(min(time.Second<<min(now.tries, 10), retryMax), 2*AskedDelay(err))
	now.retryAt = time.Now().Add(again)
	if r.byKey == nil {
		r.byKey = map[string]refusal{}
	}
	r.byKey[a.Key] = now
	r.mu.Unlock()
	if last.text != now.text && r.Changed != nil {
		r.Changed(a.Key, now.text)
	}
	return again
}

// Clear forgets the refusal of key.
func (r *Refusals) Clear(key string) {
	r.mu.Lock()
	_, known := r.byKey[key]
	delete(r.byKey, key)
	r.mu.Unlock()
	if known && r.Changed != nil {
		r.Changed(key, "")
	}
}

// RequestOf returns a hash of the parts of a request, by which Refusals compare requests. The parts must be encodable as JSON.
func RequestOf(parts ...any) uint64 {
	hash := fnv.New64a()
	_ = json.NewEncoder(hash).Encode(parts)
	return hash.Sum64()
}
