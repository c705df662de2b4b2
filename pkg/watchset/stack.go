package watchset

import (
	"context"
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// openOnOwnGoroutine opens a watch on a goroutine of its own that ends once the watch is open. A request needs a stack
// of 16 KiB. The goroutine that follows the stream uses so much stack inside the reflector that Go would never make its
// stack smaller again.
func (r *run) openOnOwnGoroutine(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
	var opening sync.WaitGroup
	opening.Go(func() { w, err = r.part.selection.openSelectionWatch(ctx, o) })
	opening.Wait()
	return w, err
}

// endResyncGoroutine ends the goroutine that a reflector keeps beside each watch until a resync is due. A Set never
// resyncs, and thousands of watches would keep thousands of such goroutines. Goexit runs the deferred calls of that
// goroutine; the watch goes on.
func endResyncGoroutine() bool {
	runtime.Goexit()
	return false
}
