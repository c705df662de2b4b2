package guard

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// byCage finds the sentence in which one of the policies that confine the operator refuses a request, in a body of JSON
// or protobuf.
var byCage = regexp.MustCompile(
	`ValidatingAdmissionPolicy 'warren-(operator-cage-[a-z]+)' with binding '[^']*' denied request: [^"\x00-\x1f]*`)

// eventsPolicy is the policy that judges the operator's Events.
const eventsPolicy = "operator-cage-events"

// mostRead bounds how much of a refusal's body is read, in bytes: a Status is small.
const mostRead = 64 << 10

const (
	// eventQuiet is how long no second Event is sent about the same policy.
	eventQuiet = 5 * time.Minute
	// lasting is how old the first refusal at an address (policy, method and path) must be before another refusal there
	// causes an Event. Refusals may end by themselves: after the operator has placed a namespace, policies judge by its
	// old state for a moment.
	lasting = 5 * time.Second
	// mostAddresses bounds the addresses that are remembered.
	mostAddresses = 1000
)

// Refusals sees every answer to the operator. It counts the writes that the operator's own policies (its cage) refused.
// It sends Events about those that the cage keeps refusing: they show a defect of the operator, or of other admission
// control. A refused Event causes no Event. Answers are passed on unchanged.
type Refusals struct {
	mu         sync.Mutex
	events     record.EventRecorder
	deployment *corev1.ObjectReference
	first      map[string]time.Time // by policy, method and path: the first refusal
	last       map[string]time.Time // by policy: the last Event
}

// NewRefusals returns Refusals that see the answers to all clients that are made from cfg after this call.
func NewRefusals(cfg *rest.Config) *Refusals {
	r := &Refusals{first: map[string]time.Time{}, last: map[string]time.Time{}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil && answer.StatusCode == http.StatusForbidden {
				r.readRefusal(request, answer)
			}
			return answer, err
		})
	})
	return r
}

// SetRecorder makes r send Events about deployment; before this call, r only counts.
func (r *Refusals) SetRecorder(events record.EventRecorder, deployment *corev1.ObjectReference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.deployment = events, deployment
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// readRefusal reads the body of a 403 and puts it back.
func (r *Refusals) readRefusal(request *http.Request, answer *http.Response) {
	start, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	rest := answer.Body
	if err != nil {
		answer.Body = body{io.MultiReader(bytes.NewReader(start), failing{err}), rest}
	} else {
		answer.Body = body{io.MultiReader(bytes.NewReader(start), rest), rest}
	}
	if match := byCage.FindSubmatch(start); match != nil {
		r.recordRefusal(string(match[1]), request.Method+" "+request.URL.Path, string(match[0]))
	}
}

// recordRefusal counts a refusal at an address, and sends an Event if the refusals there go on (see lasting).
func (r *Refusals) recordRefusal(policy, address, text string) {
	refusals.WithLabelValues(policy).Inc()
	if events, deployment := r.listenerFor(policy, address); events != nil {
		events.Event(deployment, corev1.EventTypeWarning, string(v1alpha1.ReasonCageRefused), text)
	}
}

// listenerFor returns the recorder that sends an Event for a refusal, and the Deployment that the Event is about; nil
// if no Event is due.
func (r *Refusals) listenerFor(policy, address string) (record.EventRecorder, *corev1.ObjectReference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	begun, known := r.first[policy+address]
	if !known {
		if len(r.first) >= mostAddresses {
			// What is forgotten counts as a first refusal again, which only delays an Event.
			clear(r.first)
		}
		begun, r.first[policy+address] = now, now
	}
	last, told := r.last[policy]
	if r.events == nil || policy == eventsPolicy || now.Sub(begun) < lasting || told && now.Sub(last) < eventQuiet {
		return nil, nil
	}
	r.last[policy] = now
	return r.events, r.deployment
}

// body is an answer's body of which a part was read already, and put back.
type body struct {
	io.Reader
	io.Closer
}

// failing is the rest of a body that could not be read: it returns the error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
