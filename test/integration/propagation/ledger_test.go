package propagation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// ledger is the operator's requests for one resource in the namespaces of one family since the ledger was opened, from the audit log.
type ledger struct {
	family   *family
	resource string
	at       audit.Position
	requests []audit.Request
}

func (f *family) ledger(ctx context.Context, resource string) *ledger {
	GinkgoHelper()
	at, err := f.Mark(ctx)
	Expect(err).NotTo(HaveOccurred())
	return &ledger{family: f, resource: resource, at: at}
}

// last is when the last request with that verb was made, in that namespace unless it is "".
func (l *ledger) last(ctx context.Context, verb, namespace string) time.Time {
	GinkgoHelper()
	var last time.Time
	for _, r := range l.read(ctx) {
		if r.Verb == verb && (namespace == "" || r.Namespace == namespace) && r.At.After(last) {
			last = r.At
		}
	}
	return last
}

// before counts the requests with that verb that were made before then.
func (l *ledger) before(ctx context.Context, verb string, then time.Time) int {
	GinkgoHelper()
	return l.count(ctx, func(r audit.Request) bool { return r.At.Before(then) })[verb]
}

// read adds the requests that the log has got since the last call, and returns all.
func (l *ledger) read(ctx context.Context) []audit.Request {
	GinkgoHelper()
	_, err := l.family.Mark(ctx) // what was answered before is in the log now
	Expect(err).NotTo(HaveOccurred())
	requests, at, err := audit.Read(l.family.AuditLog(), l.at)
	Expect(err).NotTo(HaveOccurred())
	l.at = at
	l.requests = append(l.requests, slices.DeleteFunc(requests, func(r audit.Request) bool {
		return r.User != controlplane.Operator || r.Resource != l.resource ||
			!strings.HasPrefix(r.Namespace, l.family.prefix)
	})...)
	return l.requests
}

// counts is the number of requests by verb.
type counts map[string]int

func (l *ledger) count(ctx context.Context, of func(audit.Request) bool) counts {
	n := counts{}
	for _, r := range l.read(ctx) {
		if of(r) {
			n[r.Verb]++
		}
	}
	return n
}

// writes counts the operator's writes, by verb.
func (l *ledger) writes(ctx context.Context) counts {
	return l.count(ctx, audit.Request.IsWrite)
}

// accepted counts the writes that changed something. Where another controller writes too, a guarded write may be refused.
func (l *ledger) accepted(ctx context.Context) counts {
	return l.count(ctx, func(r audit.Request) bool { return r.IsWrite() && r.Code < 300 })
}

// gets counts the reads of single objects in those namespaces.
func (l *ledger) gets(ctx context.Context, namespaces ...string) int {
	return l.count(ctx, func(r audit.Request) bool { return slices.Contains(namespaces, r.Namespace) })["get"]
}

// come waits for exactly these writes, and checks for a while that no more come.
func (l *ledger) come(ctx context.Context, want counts) {
	GinkgoHelper()
	Eventually(ctx, l.writes).Should(Equal(want), l.String)
	l.rests(ctx, want)
}

// rests checks for a while that the writes are these and no more come.
func (l *ledger) rests(ctx context.Context, want counts) {
	GinkgoHelper()
	Consistently(ctx, l.writes).WithTimeout(test.Quiet(soon)).Should(Equal(want), l.String)
}

// String lists the requests, for a failure.
func (l *ledger) String() string {
	var text strings.Builder
	for _, r := range l.requests {
		fmt.Fprintf(&text, "%s %s\n", r.At.Format("05.000"), r)
	}
	return text.String()
}

// guarded asserts that every change and deletion named the UID and the resourceVersion of what it meant.
func (l *ledger) guarded(ctx context.Context) {
	GinkgoHelper()
	for _, r := range l.read(ctx) {
		if r.Event.RequestObject == nil || r.Verb != "delete" && r.Verb != "update" {
			continue
		}
		if r.Verb == "delete" {
			options := &metav1.DeleteOptions{}
			Expect(json.Unmarshal(r.Event.RequestObject.Raw, options)).To(Succeed())
			Expect(options.Preconditions).NotTo(BeNil(), r.String())
			Expect(options.Preconditions.UID).NotTo(HaveValue(BeEmpty()), r.String())
			Expect(options.Preconditions.ResourceVersion).NotTo(HaveValue(BeEmpty()), r.String())
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		Expect(json.Unmarshal(r.Event.RequestObject.Raw, object)).To(Succeed())
		Expect(object.UID).NotTo(BeEmpty(), r.String())
		Expect(object.ResourceVersion).NotTo(BeEmpty(), r.String())
	}
}

// removesFirst asserts that in each namespace every DELETE was answered before the first POST or PUT arrived.
func (l *ledger) removesFirst(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	l.read(ctx)
	for _, namespace := range namespaces {
		for _, removal := range l.requests {
			for _, write := range l.requests {
				if removal.Namespace == namespace && write.Namespace == namespace && removal.Verb == "delete" &&
					(write.Verb == "create" || write.Verb == "update") {
					Expect(removal.Event.StageTimestamp.Time).To(BeTemporally("<=", write.At), "in %s:\n%s", namespace, l)
				}
			}
		}
	}
}

func anyRequest(audit.Request) bool { return true }
