package propagation

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// arrivals wakes the goroutines that wait for a kind to be served when a CRD was added or changed. It implements Sink.
type arrivals struct {
	mu   sync.Mutex
	next chan struct{}
}

func newArrivals() *arrivals { return &arrivals{next: make(chan struct{})} }

// changed returns a channel that is closed when the next CRD is added or changed.
func (a *arrivals) changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

func (a *arrivals) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.next)
	a.next = make(chan struct{})
}

// Replace implements Sink.
func (a *arrivals) Replace([]*metav1.PartialObjectMetadata) { a.tell() }

// Put implements Sink.
func (a *arrivals) Put(*metav1.PartialObjectMetadata) { a.tell() }

// Gone implements Sink.
func (a *arrivals) Gone(*metav1.PartialObjectMetadata) {}

// Lost implements Sink. Nothing is to be done: the waiting goroutines ask the API server again with a back-off.
func (a *arrivals) Lost(error) {}
