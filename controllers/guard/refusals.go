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

// byCage finds the sentence in which one of the policies that confine the operator refuses a request, in a body of JSON or
// protobuf.
var byCage = regexp.MustCompile(`ValidatingAdmissionPolicy 'warren-(operator-cage-[a-z]+)' with binding '[^']*' denied request: [^"\x00-\x1f]*`)

// mostRead bounds how much of a refusal's body is read, in bytes: a Status is small.
const mostRead = 64 << 10

// eventQuiet is how long no second Event is sent about the same policy.
const eventQuiet = 5 * time.Minute

// Refusals sees every answer to the operator, and reports writes that its own cage refused. Such a refusal is a defect of the
// operator, or the work of somebody else who has its token. Answers are passed on unchanged.
type Refusals struct {
	mu         sync.Mutex
	events     record.EventRecorder
	deployment *corev1.ObjectReference
	last       map[string]time.Time
}

// See returns Refusals that see the answers to all clients that are made from cfg after this call.
func See(cfg *rest.Config) *Refusals {
	r := &Refusals{last: map[string]time.Time{}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil && answer.StatusCode == http.StatusForbidden {
				r.readRefusal(answer)
			}
			return answer, err
		})
	})
	return r
}

// Tell makes r send Events about deployment; before this call, r only counts.
func (r *Refusals) Tell(events record.EventRecorder, deployment *corev1.ObjectReference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.deployment = events, deployment
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// readRefusal reads the body of a 403 and puts it back.
func (r *Refusals) readRefusal(answer *http.Response) {
	start, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	rest := answer.Body
	if err != nil {
		answer.Body = body{io.MultiReader(bytes.NewReader(start), failing{err}), rest}
	} else {
		answer.Body = body{io.MultiReader(bytes.NewReader(start), rest), rest}
	}
	if match := byCage.FindSubmatch(start); match != nil {
		r.noteRefusal(string(match[1]), string(match[0]))
	}
}

func (r *Refusals) noteRefusal(policy, text string) {
	refusals.WithLabelValues(policy).Inc()
	r.mu.Lock()
	now := time.Now()
	last, told := r.last[policy]
	say := r.events != nil && (!told || now.Sub(last) >= eventQuiet)
	if say {
		r.last[policy] = now
	}
	events, deployment := r.events, r.deployment
	r.mu.Unlock()
	if say {
		events.Event(deployment, corev1.EventTypeWarning, string(v1alpha1.ReasonCageRefused), text)
	}
}

// body is an answer's body of which a part was read already, and put back.
type body struct {
	io.Reader
	io.Closer
}

// failing is the rest of a body that could not be read: it returns the error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
