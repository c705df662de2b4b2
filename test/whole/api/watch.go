package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Watch is a watch that a client has opened. Its events wait until they are delivered, one after the other.
type Watch struct {
	// Kind is what is watched, Ends when the API server ends the watch.
	Kind *Kind
	Ends time.Time

	wanted       selection
	metadataOnly bool
	initial      []*Record
	// marks is whether a bookmark follows the initial events.
	marks bool
	next  int // in the kind's log
	// revision is that of the last bookmark.
	revision int64
}

func (s *Server) watch(to route, r Request) Response {
	k := to.kind
	w := &Watch{Kind: k, wanted: selectionOf(to, r), metadataOnly: strings.Contains(r.Accept, "as=PartialObjectMetadata"),
		next: len(k.log), revision: s.revision, Ends: time.Now().Add(watchLength(r))}
	from, all := r.Query.Get("resourceVersion"), r.Query.Get("sendInitialEvents") == "true"
	switch {
	case all || from == "" || from == "0":
		for _, each := range k.All() {
			if w.wanted.has(each) {
				w.initial = append(w.initial, each)
			}
		}
		w.marks = all
	default:
		revision, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("resourceVersion=%q of a watch: %v", from, err))
		}
		if revision < k.compacted {
			return expired().response()
		}
		w.next = slices.IndexFunc(k.log, func(e Event) bool { return e.New.revision > revision })
		if w.next < 0 {
			w.next = len(k.log)
		}
	}
	return Response{Code: 200, Watch: w}
}

// watchLength is how long the API server keeps a watch.
func watchLength(r Request) time.Duration {
	seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds"))
	if err != nil || seconds == 0 {
		return 45 * time.Minute
	}
	return time.Duration(seconds) * time.Second
}

// Due reports whether the watch has something to deliver.
func (w *Watch) Due() bool {
	w.skip()
	return len(w.initial) > 0 || w.marks || w.next < len(w.Kind.log)
}

// Behind is the first revision that the watch has not delivered.
func (w *Watch) Behind() int64 {
	w.skip()
	if w.next < len(w.Kind.log) {
		return w.Kind.log[w.next].New.revision
	}
	return math.MaxInt64
}

// skip passes events that the client did not ask for.
func (w *Watch) skip() {
	for w.next < len(w.Kind.log) {
		e := w.Kind.log[w.next]
		if w.wanted.has(e.Old) || e.Type != watch.Deleted && w.wanted.has(e.New) {
			return
		}
		w.next++
	}
}

// Next returns the next events, at most so many, as they are sent.
func (w *Watch) Next(most int) []byte {
	var sent []byte
	for ; most > 0 && w.Due(); most-- {
		switch {
		case len(w.initial) > 0:
			sent = appendEvent(sent, watch.Added, w.initial[0].encode(w.metadataOnly))
			w.initial = w.initial[1:]
		case w.marks:
			w.marks = false
			sent = appendEvent(sent, watch.Bookmark, w.bookmark())
		default:
			e := w.Kind.log[w.next]
			w.next++
			sent = appendEvent(sent, w.typeOf(e), w.shown(e).encode(w.metadataOnly))
		}
	}
	return sent
}

// typeOf returns what an event is for a client that selects objects: one that is selected no longer is gone.
func (w *Watch) typeOf(e Event) watch.EventType {
	before, now := w.wanted.has(e.Old), e.Type != watch.Deleted && w.wanted.has(e.New)
	switch {
	case !now:
		return watch.Deleted
	case !before:
		return watch.Added
	}
	return watch.Modified
}

// shown returns the object that an event shows: one that is selected no longer is shown as it was, with the new resourceVersion.
func (w *Watch) shown(e Event) *Record {
	if e.Type == watch.Deleted || w.wanted.has(e.New) {
		return e.New
	}
	was := &Record{Unstructured: e.Old.DeepCopy(), Kind: w.Kind}
	was.SetResourceVersion(e.New.GetResourceVersion())
	return was
}

// bookmark tells the client that the initial events are complete.
func (w *Watch) bookmark() []byte {
	kind, version := w.Kind.Kind, w.Kind.GroupVersion().String()
	if w.metadataOnly {
		kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	return mustEncode(map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{
		"resourceVersion": strconv.FormatInt(w.revision, 10), "annotations": map[string]string{"k8s.io/initial-events-end": "true"},
	}})
}

func appendEvent(to []byte, event watch.EventType, object []byte) []byte {
	return append(fmt.Appendf(to, `{"type":%q,"object":%s}`, event, object), '\n')
}
