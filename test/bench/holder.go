package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// The ways in which a separate process holds the metadata of Secrets.
const (
	holdNothing       = "nothing"
	setOfCluster      = "watchset, cluster"
	setOfNamespaces   = "watchset, namespaces"
	cacheOfCluster    = "controller-runtime, cluster"
	cacheOfNamespaces = "controller-runtime, namespaces"
)

// holding describes what a separate process holds in its memory. The process reads it from its standard input.
type holding struct {
	Access     controlplane.Access
	User       string
	How        string
	Namespaces []string
	Selector   string // a label selector; empty selects all
	Objects    int    // how many objects there are
	Changes    int    // how many changes to wait for; only where the objects are passed on to a ledger
	Idle       time.Duration
}

// cost is what the process of a holding has used. The process prints it.
type cost struct {
	// Watches and Requests count the watches and the other requests until all objects were there. Received is what came from the network until
	// then, in bytes, still encrypted.
	Watches, Requests, Received int64
	Synced                      time.Duration
	// Heap is the memory of heap and stacks in use. Resident is the resident memory after the garbage was given back, and Peak is the
	// largest ever. All are in bytes.
	Heap, Resident, Peak float64
	// Asked counts the requests after all objects were there, without watches.
	Asked int64
	// Started is the CPU time until all objects were there. Changed is the CPU time for the changes after that. Both are in seconds.
	Started, Changed float64
}

// holdInformers is the main function of a process that holds informers, so that its memory is theirs alone.
func holdInformers(ctx context.Context, in io.Reader, out io.Writer) error {
	h := holding{}
	if err := json.NewDecoder(in).Decode(&h); err != nil {
		return fmt.Errorf("reading what to hold: %w", err)
	}
	m, begin, passed := &meter{}, time.Now(), &ledger{}
	held, err := h.open(ctx, m, passed)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(held)
	err = waitFor(ctx, fmt.Sprintf("%d objects", h.Objects), func(ctx context.Context) (bool, error) {
		n, err := held(ctx)
		return n == h.Objects, err
	})
	if err != nil {
		return err
	}
	c := cost{Watches: m.watches.Load(), Requests: m.others.Load(), Received: m.received.Load(), Synced: time.Since(begin)}
	if c.Started, err = readCPUTime(os.Getpid()); err != nil {
		return err
	}
	if h.Changes > 0 {
		if c.Changed, err = h.awaitChanges(ctx, passed, out); err != nil {
			return err
		}
	}
	select {
	case <-time.After(h.Idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	c.Asked = m.others.Load() - c.Requests
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	c.Heap = float64(stats.HeapAlloc + stats.StackInuse)
	if c.Resident, err = memoryOf(os.Getpid(), residentNow); err != nil {
		return err
	}
	if c.Peak, err = memoryOf(os.Getpid(), highWater); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(c)
}

// open starts the informers, and returns a function that counts the objects. This function waits, or returns less, as long as some can't be
// read yet.
func (h holding) open(ctx context.Context, m *meter, passed *ledger) (func(context.Context) (int, error), error) {
	cfg := m.measured(h.Access.Config(h.User))
	switch h.How {
	case holdNothing:
		return func(context.Context) (int, error) { return h.Objects, nil }, nil
	case setOfCluster, setOfNamespaces:
		return h.openSet(ctx, cfg)
	case cacheOfCluster, cacheOfNamespaces:
		return h.openCache(ctx, cfg)
	case setIntoSink:
		return passed.count, h.openSink(ctx, cfg, passed)
	case reflectorIntoSink:
		return passed.count, h.openReflector(ctx, cfg, passed)
	}
	return nil, fmt.Errorf("no way to hold is called %q", h.How)
}

func (h holding) openSet(ctx context.Context, cfg *rest.Config) (func(context.Context) (int, error), error) {
	set, err := watchset.New(cfg, watchset.Options{MaxInformers: len(h.Namespaces) + 1, MaxNamespaces: len(h.Namespaces) + 1})
	if err != nil {
		return nil, err
	}
	go func() { _ = set.Start(ctx) }()
	request := watchset.Request{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
	if h.How == setOfNamespaces {
		request.Scope = watchset.Namespaces(watchset.NewNamespaceSet(h.Namespaces...))
	}
	if request.LabelSelector, err = labels.Parse(h.Selector); err != nil {
		return nil, err
	}
	lease, err := set.Acquire(watchset.Static("bench"), request)
	return func(ctx context.Context) (int, error) {
		if err := lease.Wait(ctx); err != nil {
			return 0, err
		}
		all, err := lease.List("", nil)
		return len(all), err
	}, err
}

func (h holding) openCache(ctx context.Context, cfg *rest.Config) (func(context.Context) (int, error), error) {
	selector, err := labels.Parse(h.Selector)
	if err != nil {
		return nil, err
	}
	o := cache.Options{Scheme: devcluster.Scheme(), DefaultTransform: cache.TransformStripManagedFields(), DefaultLabelSelector: selector}
	if h.How == cacheOfNamespaces {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range h.Namespaces {
			o.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	if o.HTTPClient, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, err
	}
	c, err := cache.New(cfg, o)
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Start(ctx) }()
	return func(ctx context.Context) (int, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := c.List(ctx, list, client.UnsafeDisableDeepCopy) // the first call waits until all is there
		if early := (&cache.ErrCacheNotStarted{}); errors.As(err, &early) {
			return 0, nil
		}
		return len(list.Items), err
	}, nil
}

var residentNow = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// memoryOf returns what one line of a process's status says, in bytes. It works on Linux alone.
func memoryOf(pid int, line *regexp.Regexp) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	m := line.FindSubmatch(status)
	if m == nil {
		return 0, fmt.Errorf("no %s in /proc/%d/status", line, pid)
	}
	kib, err := strconv.ParseFloat(string(m[1]), 64)
	return kib * 1024, err
}
