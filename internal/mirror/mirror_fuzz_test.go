package mirror_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/mirror"
)

// FuzzTable compares a Table with a model of an API server, whose watch is behind, breaks, and begins anew at an older version, while
// answers to the process's own requests are late or lost, and namespaces are deleted and made anew. The Table never goes back in time,
// and is right as soon as everything was delivered.
func FuzzTable(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, uint16(400))
	}
	f.Add(uint64(104), uint16(229)) // the end of an object was remembered beside an open creation, after a list was past it
	f.Add(uint64(42), uint16(468))  // a list that was older than a deletion forgot it, and the watch showed the object again
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		w := newWorld(t, seed)
		for range steps % 2000 {
			w.step()
		}
		w.settle()
	})
}

type object = *metav1.PartialObjectMetadata

// firstVersion is the version of the model's etcd before the first event.
const firstVersion = 100

// versionAfter returns the resourceVersion after a number of events.
func versionAfter(events int) string { return strconv.Itoa(firstVersion + events) }

// event is one change in the history of the model's etcd.
type event struct {
	at   mirror.Place
	is   object // the last state, where the object has ended; nil for the end of a namespace, which the watch doesn't show
	ends bool
}

// answer is the answer to a request that is on its way.
type answer struct {
	flight *mirror.Flight
	take   func(*mirror.Flight)
}

type world struct {
	t       *testing.T
	random  *rand.Rand
	log     []string
	table   *mirror.Table[object, string]
	stored  map[mirror.Place]object
	events  []event
	watched int // how many events the watch has shown
	isOpen  bool
	answers []answer
	// late are writes of which the process has no answer, which may be carried out yet.
	late []func()
	// reached is, for each place, the newest version that the table has shown, or up to which it was right that there is none.
	reached map[mirror.Place]int
	// forgotten are the namespaces that were deleted, of which the process has not heard yet.
	forgotten []ending
	uids      int
}

// ending is the end of a namespace, and the version that the process knows of it.
type ending struct{ namespace, version string }

var places = []mirror.Place{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}, {Namespace: "b", Name: "x"}}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), stored: map[mirror.Place]object{}}
	w.restart()
	return w
}

// restart begins a new process, and drops what the old one was waiting for. What it has sent may be carried out later all the same.
func (w *world) restart() {
	w.table = mirror.New(func(o object) string { return o.Annotations["value"] })
	w.isOpen, w.answers, w.forgotten, w.reached = false, nil, nil, map[mirror.Place]int{}
}

// restore brings etcd back to an older state, and restarts the process, as the operator does.
func (w *world) restore() {
	w.events = w.events[:w.random.IntN(len(w.events)+1)]
	clear(w.stored)
	for _, e := range w.events {
		if w.stored[e.at] = e.is; e.ends || e.is == nil {
			delete(w.stored, e.at)
		}
	}
	w.watched, w.late = 0, nil
	w.restart()
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// write changes the model: value "" deletes.
func (w *world) write(at mirror.Place, value string) object {
	version := versionAfter(len(w.events) + 1)
	was := w.stored[at]
	if value == "" {
		end := was.DeepCopy()
		end.ResourceVersion = version
		delete(w.stored, at)
		w.events = append(w.events, event{at, end, true})
		return end
	}
	is := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, ResourceVersion: version,
		Annotations: map[string]string{"value": value}}}
	if was != nil {
		is.UID = was.UID
	} else {
		w.uids++
		is.UID = types.UID(fmt.Sprint("uid-", w.uids))
	}
	w.stored[at] = is
	w.events = append(w.events, event{at, is, false})
	return is
}

func (w *world) pick() mirror.Place { return places[w.random.IntN(len(places))] }

func (w *world) step() {
	switch w.random.IntN(24) {
	case 0, 1, 2, 3:
		w.changeByOthers()
	case 4, 5, 6, 7, 8, 9, 10:
		w.showNext()
	case 11, 12, 13:
		w.sendWrite()
	case 14:
		w.sendRead()
	case 15, 16, 17:
		w.deliverAnswer()
	case 18:
		w.openWatch()
	case 19:
		w.deleteNamespace()
	case 20:
		w.hearOfNamespace()
	case 21:
		w.loseSight()
	case 22:
		w.carryOutLate()
	case 23:
		switch w.random.IntN(20) {
		case 0:
			w.note("restart")
			w.restart()
		case 1:
			w.note("restore")
			w.restore()
		}
	}
	w.check()
}

func (w *world) changeByOthers() {
	at, value := w.pick(), strconv.Itoa(w.random.IntN(1000))
	if w.stored[at] != nil && w.random.IntN(2) == 0 {
		value = ""
	}
	w.note("somebody writes %s %q as %s", at, value, w.write(at, value).ResourceVersion)
}

func (w *world) showNext() {
	if !w.isOpen || w.watched == len(w.events) {
		return
	}
	e := w.events[w.watched]
	if w.watched++; e.is == nil {
		return
	}
	w.note("watch shows %s %s ends=%v", e.at, e.is.ResourceVersion, e.ends)
	if e.ends {
		w.table.End(e.is)
	} else {
		w.table.Show(e.is)
	}
}

// openWatch lists, perhaps at an API server that is behind, and watches from there.
func (w *world) openWatch() {
	w.watched = len(w.events)
	if w.random.IntN(2) == 0 {
		w.watched -= w.random.IntN(min(6, len(w.events)+1))
	}
	at := map[mirror.Place]object{}
	for _, e := range w.events[:w.watched] {
		if at[e.at] = e.is; e.ends || e.is == nil {
			delete(at, e.at)
		}
	}
	w.note("list at %d", w.watched)
	w.table.List(mirror.Everywhere, versionAfter(w.watched), slices.Collect(maps.Values(at)))
	w.isOpen = true
}

// loseSight ends the watch, and for a time nothing counts that it has shown.
func (w *world) loseSight() {
	if w.random.IntN(4) > 0 {
		return
	}
	w.note("blind")
	w.table.SetBlind(mirror.Everywhere, "forbidden")
	w.isOpen, w.reached = false, map[mirror.Place]int{}
}

// sendWrite sends a guarded write of the process: it creates, changes or deletes what the process knows of.
func (w *world) sendWrite() {
	at, value := w.pick(), "own"+strconv.Itoa(w.random.IntN(1000))
	uid, version := w.table.Mark(at).UID, w.table.Mark(at).Version
	isDeletion := uid != "" && w.random.IntN(3) == 0
	flight := w.table.Begin(at)
	w.note("sends a write of %s over %s, deletes=%v", at, version, isDeletion)
	send := func() func(*mirror.Flight) {
		is := w.stored[at]
		switch {
		case (is == nil) != (uid == "") || is != nil && (is.UID != uid || is.ResourceVersion != version):
			return func(f *mirror.Flight) { w.table.Refused(f) }
		case isDeletion:
			w.write(at, "")
			return func(f *mirror.Flight) { w.table.Deleted(f) }
		}
		now := w.write(at, value)
		return func(f *mirror.Flight) { w.table.Answered(f, now) }
	}
	switch w.random.IntN(4) {
	case 0: // it was not carried out, or will be later; the process doesn't know
		w.late = append(w.late, func() { send() })
		w.answers = append(w.answers, answer{flight, func(f *mirror.Flight) { w.table.Lost(f) }})
	case 1: // it was, and the answer gets lost
		send()
		w.answers = append(w.answers, answer{flight, func(f *mirror.Flight) { w.table.Lost(f) }})
	default:
		w.answers = append(w.answers, answer{flight, send()})
	}
}

func (w *world) sendRead() {
	at := w.pick()
	flight := w.table.Begin(at)
	w.note("reads %s", at)
	if is := w.stored[at]; is != nil {
		w.answers = append(w.answers, answer{flight, func(f *mirror.Flight) { w.table.Answered(f, is) }})
	} else {
		w.answers = append(w.answers, answer{flight, func(f *mirror.Flight) { w.table.Absent(f) }})
	}
}

func (w *world) deliverAnswer() {
	if len(w.answers) == 0 {
		return
	}
	i := w.random.IntN(len(w.answers))
	a := w.answers[i]
	w.answers = slices.Delete(w.answers, i, i+1)
	w.note("an answer arrives")
	a.take(a.flight)
}

func (w *world) carryOutLate() {
	if len(w.late) > 0 {
		w.note("a late write arrives")
		w.late[0]()
		w.late = w.late[1:]
	}
}

func (w *world) deleteNamespace() {
	if w.random.IntN(2) == 0 {
		return
	}
	namespace, before := w.pick().Namespace, len(w.events)
	for _, at := range places {
		if at.Namespace == namespace && w.stored[at] != nil {
			w.write(at, "")
		}
	}
	w.events = append(w.events, event{})
	w.note("namespace %s is deleted at %d", namespace, len(w.events))
	known := len(w.events)
	if w.random.IntN(3) == 0 {
		known = before // the process learns of the new namespace alone, by a list
	}
	w.forgotten = append(w.forgotten, ending{namespace, versionAfter(known)})
}

func (w *world) hearOfNamespace() {
	if len(w.forgotten) > 0 {
		w.note("hears that namespace %s is gone", w.forgotten[0])
		w.table.ForgetNamespace(w.forgotten[0].namespace, w.forgotten[0].version)
		w.forgotten = w.forgotten[1:]
	}
}

// check fails where the table shows an older state of a place than it has shown before.
func (w *world) check() {
	for _, at := range places {
		version := w.table.Mark(at).Version
		if version == "" {
			continue
		}
		number, _ := strconv.Atoi(version)
		number -= firstVersion
		if number < w.reached[at] {
			w.fail("%s goes back from %d to %d", at, w.reached[at], number)
		}
		w.reached[at] = number
		if got, want := *w.table.At(at), w.events[number-1].is.Annotations["value"]; got != want || w.events[number-1].ends {
			w.fail("%s has %q at version %d, which was %q", at, got, number, want)
		}
	}
}

// settle delivers everything, and compares the table with the model.
func (w *world) settle() {
	for len(w.forgotten) > 0 {
		w.hearOfNamespace()
	}
	for len(w.late) > 0 {
		w.carryOutLate()
	}
	if !w.isOpen {
		w.openWatch()
	}
	for w.watched < len(w.events) || len(w.answers) > 0 {
		if w.random.IntN(2) == 0 {
			w.showNext()
		} else {
			w.deliverAnswer()
		}
		w.check()
	}
	for _, at := range places {
		uid := w.table.Mark(at).UID
		switch is := w.stored[at]; {
		case is == nil && uid != "":
			w.fail("%s is gone, and the table has %s", at, uid)
		case is != nil && (uid != is.UID || *w.table.At(at) != is.Annotations["value"]):
			w.fail("%s is %s, and the table has %q", at, is.UID, uid)
		}
	}
	// What is remembered of objects that are gone ends: an open creation alone may stay.
	for _, at := range places {
		flight := w.table.Begin(at)
		if is := w.stored[at]; is != nil {
			w.table.Answered(flight, is)
		} else {
			w.table.Absent(flight)
		}
	}
	if kept := w.table.Kept(); kept != len(w.stored) {
		w.fail("the table keeps %d records of %d objects", kept, len(w.stored))
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(0, len(w.log)-40):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}
