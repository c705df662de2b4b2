package fairqueue

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// spelled returns the attributes of a key from its text. The first letter is the tenant; a dot means none. Each X adds a weight of one MiB,
// each h half a MiB. "!" makes the work urgent, and "-" makes it a deletion.
func spelled(word string) Attributes {
	a := Attributes{Tenant: strings.TrimPrefix(word[:1], "."), Class: 2, Lane: word,
		Weight: strings.Count(word, "X")<<20 + strings.Count(word, "h")<<19}
	switch {
	case strings.Contains(word, "!"):
		a.Class, a.Urgent = 0, true
	case strings.Contains(word, "-"):
		a.Class = 1
	}
	return a
}

// script plays steps with the keys of a queue, whose clock is fake:
//
//	add a1 b1      adds keys
//	next a1        the key that begins next
//	begins a1 b1   all keys that may begin now, in this order
//	ends a1        the work on a key has ended
//	fails a1       the same, and its request has failed
//	becomes aX a-  from now on the first key has the attributes of the second
//	wait 5s        time passes
type script struct {
	*testing.T
	keys    *keys[string]
	clock   *clocktesting.FakeClock
	becomes map[string]string
}

func play(t *testing.T, steps ...string) {
	c := clocktesting.NewFakeClock(time.Now())
	s := script{T: t, clock: c, becomes: map[string]string{}}
	s.keys = newKeys(s.attributesOf, c)
	for i, step := range steps {
		verb, rest, _ := strings.Cut(step, " ")
		if got := s.step(verb, strings.Fields(rest)); got != "" {
			t.Fatalf("step %d, %q: %s", i+1, step, got)
		}
	}
}

func (s script) attributesOf(word string) Attributes {
	if now, ok := s.becomes[word]; ok {
		word = now
	}
	return spelled(word)
}

func (s script) step(verb string, words []string) (wrong string) {
	switch verb {
	case "add":
		for _, word := range words {
			s.keys.Add(word)
		}
	case "begins", "next":
		var got []string
		for k, ok := s.keys.beginNext(); ok; k, ok = s.keys.beginNext() {
			if got = append(got, k); verb == "next" {
				break
			}
		}
		if strings.Join(got, " ") != strings.Join(words, " ") {
			return "begun have " + strings.Join(got, " ")
		}
	case "ends", "fails":
		s.keys.endWork(words[0], verb == "fails")
	case "becomes":
		s.becomes[words[0]] = words[1]
	case "wait":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			s.Fatal(err)
		}
		s.clock.Step(d)
	default:
		return "no such step"
	}
	return ""
}

func TestLimits(t *testing.T) {
	for name, steps := range map[string][]string{
		"PROP-Q7 at most 3 MiB of large bodies are under way at once, and small bodies wait for none of them": {
			"add aX1 aXX2 aX3 a4 a5", "begins a4 aX1 a5 aXX2", "ends aX1", "begins aX3",
		},
		"PROP-Q7 no other large body is under way with one of more than 3 MiB": {
			"add aXXXXX1 bX1", "begins aXXXXX1", "ends aXXXXX1", "begins bX1",
		},
		"PROP-Q7 trees take turns with large bodies": {
			"add aX1 aX2 aX3 aX4 bX1", "begins aX1", "ends aX1", "begins bX1", "ends bX1", "begins aX2", "ends aX2", "begins aX3",
		},
		"PROP-Q7 a tenant with many small bodies has its turns with large ones too": {
			"add z1 bX1 bX2 bX3 bX4", "begins z1 bX1", "add aX1 aX2 a1 a2 a3 a4", "begins a1 a2", "ends bX1", "begins bX2", "ends a1", "begins a3",
			"ends bX2", "begins aX1", "ends a2", "begins a4", "ends aX1", "begins bX3", "ends bX3", "begins aX2",
		},
		"PROP-Q7 a large body does not wait for a tenant that has more urgent work to do first": {
			"add z1 aX1 bX1", "next z1", "add a!1 a!2 a!3", "next a!1", "next bX1", "next a!2", "ends bX1", "next a!3", "next aX1",
		},
		"PROP-Q7 no smaller large body overtakes one that waits for room": {
			"add aXX1", "begins aXX1", "add bXX2", "begins", "add aX3 aX4", "begins", "ends aXX1", "begins bXX2", "ends bXX2", "begins aX3",
		},
		"PROP-Q9 a waiting key that has become a deletion waits for no large body": {
			"add aXXX1 bX2", "begins aXXX1", "becomes bX2 b-2", "add bX2", "begins bX2",
		},
		"PROP-Q9 a waiting key that gets a large body has the limit of large bodies": {
			"add a1 a2 a3 a4 a5", "becomes a1 aX", "becomes a2 aX", "becomes a3 aX", "becomes a4 aX", "add a1 a2 a3 a4", "begins a5 a1 a2 a3",
		},
		"PROP-Q9 so does a key that is held back because of another tenant": {
			"add b1 a1 a2 a3 a4", "begins b1 a1 a2", "becomes a3 aX", "becomes a4 aX", "add a3 a4", "begins a3", "ends a1", "begins",
			"ends a3", "begins a4",
		},
		"PROP-Q9 a waiting key that has become a deletion comes before the copies of its tenant": {
			"add b1 aX1 aX2 a1 a2 a3", "begins b1 a1 aX1 a2", "becomes aX2 a-2", "add aX2", "begins", "ends a1", "begins aX2",
			"ends a2", "begins a3",
		},
		"PROP-Q8 a tenant has all workers while no other has work": {
			"add a1 a2 a3 a4", "begins a1 a2 a3 a4",
		},
		"PROP-Q8 two tenants have two workers each; when one copy ends, that tenant's next begins": {
			"add a1 a2 a3 a4 b1 b2 b3", "begins a1 b1 a2 b2", "ends a1", "begins a3", "ends b2", "begins b3",
		},
		"PROP-Q8 deletions of RoleBindings, and work outside trees, do not wait": {
			"add a1 a2 a3 b1 .1 .2 .3", "begins a1 b1 .1 a2 .2 .3", "add a!1 a!2", "begins a!1 a!2",
		},
		"PROP-Q8 urgent work of another tenant takes no worker": {
			"add b!1", "begins b!1", "add a1 a2 a3 a4", "begins a1 a2 a3 a4",
		},
		"PROP-Q9 a waiting key that has become urgent begins at once": {
			"add b1 a1 a2 a3 a4", "begins b1 a1 a2", "becomes a4 a!4", "add a4", "begins a4",
		},
		"PROP-Q8 5 s after the last key of other tenants, a tenant has all workers, even if nothing has ended": {
			"add b1 a1 a2 a3 a4 a5", "begins b1 a1 a2", "wait 4999ms", "begins", "wait 1ms", "begins a3 a4 a5",
		},
		"PROP-Q8 each new key of another tenant begins these 5 s anew": {
			"add b1 a1 a2 a3", "begins b1 a1 a2", "wait 4s", "add b2", "begins b2", "wait 4s", "begins", "wait 1s", "begins a3",
		},
		"PROP-Q8 while another tenant has work, a body of 1 MiB is followed by a rest of twice its time": {
			"add z1 aX1 aX2", "begins z1 aX1", "wait 100ms", "ends aX1", "begins", "wait 199ms", "begins", "wait 1ms", "begins aX2",
		},
		"PROP-Q8 that rest is 5 s at most": {
			"add aX1 aX2", "begins aX1 aX2", "wait 10s", "add z1 aX3", "begins z1", "ends aX1", "ends aX2", "wait 4999ms", "add z2", "begins z2",
			"wait 1ms", "begins aX3",
		},
		"PROP-Q8 two bodies of half a MiB are under way at a time": {
			"add z1 ah1 ah2 ah3", "begins z1 ah1 ah2", "ends ah1", "begins ah3",
		},
		"PROP-Q8 while another tenant has work, a worker rests after a refused copy for twice the time of the refusal": {
			"add b1 a1 a2 a3", "begins b1 a1 a2", "wait 100ms", "fails a1", "begins", "wait 199ms", "begins", "wait 1ms", "begins a3",
		},
		"PROP-Q8 that rest is 0.5 s at most": {
			"add b1 a1 a2 a3", "begins b1 a1 a2", "wait 2s", "fails a1", "wait 499ms", "begins", "wait 1ms", "begins a3",
		},
		"PROP-Q8 after a copy that was written, the worker does not rest": {
			"add b1 a1 a2 a3", "begins b1 a1 a2", "wait 100ms", "ends a1", "begins a3",
		},
		"PROP-Q8 while no other tenant has work, no worker rests": {
			"add a1", "begins a1", "wait 100ms", "fails a1", "add b1 a2 a3", "begins b1 a2 a3",
		},
		"PROP-Q8 the example of the package has this order": {
			"add as1 as2 as3 as4 bXc1 bXc2 bXc3 cx", "begins as1 bXc1 cx as2", "ends as1", "begins as3", "wait 100ms", "ends bXc1", "begins",
			"add a!", "begins a!",
			"wait 199ms", "begins", "wait 1ms", "begins bXc2",
		},
		"PROP-Q9 a key that is added while it is worked on waits until that ends": {
			"add a1", "begins a1", "add a1 a1", "begins", "ends a1", "begins a1", "ends a1", "begins",
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, steps...) })
	}
}
