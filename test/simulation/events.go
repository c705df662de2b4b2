package simulation

import (
	"fmt"
	"math/rand/v2"
)

// event is one thing that happens in a history. What it means depends on what is there when it happens: an event may be taken out of a
// history, and the rest is a history again.
type event struct {
	op      op
	a, b, c int
}

// op is the kind of an event.
type op int

// What users, strangers and admins do; what the world and time do; what goes wrong.
const (
	putSource op = iota
	deleteObject
	editCopy
	unlabelCopy
	putStranger
	holdObject
	releaseObject
	moveNamespace
	deleteNamespace
	makeNamespace
	labelNamespace
	generate
	distribute1
	undistribute
	work // the ops from here on happen most often
	begin
	show
	pass
	control
	tick
	scrub
	askRights
	deny // the ops from here on are faults
	fail1
	breakWatch
	kill
	start
	elect
	breakKind
	healKind
	restoreEtcd
	landLate
	ops
)

var opNames = [ops]string{
	"source", "delete", "edit", "unlabel", "stranger", "hold", "release", "move", "delete namespace", "make namespace", "label namespace",
	"generate", "distribute", "undistribute", "work", "begin", "show", "pass", "control", "tick", "scrub", "ask rights", "deny",
	"fail", "break watch",
	"kill", "start", "elect", "break kind", "heal kind", "restore etcd", "land late",
}

// weights say how often each op happens in a history in which it happens at all.
var weights = [ops]int{
	putSource: 12, deleteObject: 4, editCopy: 4, unlabelCopy: 2, putStranger: 2, holdObject: 1, releaseObject: 2, moveNamespace: 4,
	deleteNamespace: 1, makeNamespace: 2, labelNamespace: 1, generate: 3, distribute1: 3, undistribute: 1,
	work: 60, begin: 30, show: 50, pass: 8, control: 3, tick: 1, scrub: 1, askRights: 1,
	deny: 2, fail1: 8, breakWatch: 2, kill: 2, start: 2, elect: 2, breakKind: 2, healKind: 3, restoreEtcd: 1, landLate: 3,
}

// script is what a seed makes: the settings of a history, and its events. Each history has some of the users' ops and some of the faults:
// many at once would hide one another.
type script struct {
	seed   uint64
	setup  setup
	events []event
}

// setup is the world in which a history begins.
type setup struct {
	limit    int  // of the number of copies in each tree; 0 for none
	bytes    int  // of the bytes of all copies in each tree; 0 for none
	template bool // acme has a template
	removed  bool // Secrets are in mode Remove
}

// isLimited reports whether limits may hold copies back.
func (s setup) isLimited() bool { return s.limit > 0 || s.bytes > 0 }

func newScript(seed uint64) script {
	random := rand.New(rand.NewPCG(seed, 0))
	s := script{seed: seed, setup: setup{template: random.IntN(2) == 0}}
	if random.IntN(6) == 0 {
		s.setup.limit = 1 + random.IntN(6)
	} else if random.IntN(8) == 0 {
		s.setup.bytes = 100 + random.IntN(600)
	}
	s.setup.removed = random.IntN(40) == 0
	var bag []op
	for o := range ops {
		if o == putSource || o >= work && o <= askRights || random.IntN(2) == 0 {
			for range weights[o] {
				bag = append(bag, o)
			}
		}
	}
	for range 10 + random.IntN(20)*random.IntN(10) {
		s.events = append(s.events, event{bag[random.IntN(len(bag))], random.IntN(1 << 10), random.IntN(1 << 10), random.IntN(1 << 10)})
	}
	return s
}

func (e event) String() string { return fmt.Sprintf("%s %d %d %d", opNames[e.op], e.a, e.b, e.c) }
