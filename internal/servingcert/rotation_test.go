package servingcert_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/servingcert"
)

const (
	day    = 24 * time.Hour
	settle = time.Minute
	notYet = time.Duration(-1)
)

var garbage = servingcert.Pair{Certificate: []byte("garbage"), Key: []byte("garbage")}

func TestDecide(t *testing.T) {
	good, ending, expired, next := made(t, 0, names...), made(t, 61*day, names...), made(t, 91*day, names...), made(t, 0, names...)
	foreign := made(t, 0, "elsewhere.example")
	type contents = servingcert.Contents
	for name, c := range map[string]struct {
		contents contents
		settled  time.Duration
		action   servingcert.Action
		again    time.Duration
	}{
		"nothing":                           {contents{}, notYet, servingcert.Replace, 0},
		"garbage":                           {contents{Current: garbage}, time.Hour, servingcert.Replace, 0},
		"expired":                           {contents{Current: expired}, time.Hour, servingcert.Replace, 0},
		"for other names":                   {contents{Current: foreign}, time.Hour, servingcert.Replace, 0},
		"nothing to serve, next is garbage": {contents{Next: garbage}, time.Hour, servingcert.Replace, 0},
		"nothing to serve, but the next":    {contents{Current: expired, Next: next}, notYet, servingcert.Switch, 0},
		"good, not trusted yet":             {contents{Current: good}, notYet, servingcert.Keep, 60 * day},
		"good":                              {contents{Current: good}, time.Hour, servingcert.Keep, 60 * day},
		"30 days and a second left":         {contents{Current: made(t, 60*day-time.Second, names...)}, time.Hour, servingcert.Keep, time.Second},
		"30 days left":                      {contents{Current: made(t, 60*day, names...)}, time.Hour, servingcert.Prepare, 0},
		"29 days left, not trusted yet":     {contents{Current: ending}, notYet, servingcert.Prepare, 0},
		"next is not trusted yet":           {contents{Current: ending, Next: next}, notYet, servingcert.Keep, 0},
		"next is trusted for 20 s":          {contents{Current: ending, Next: next}, 20 * time.Second, servingcert.Keep, 40 * time.Second},
		"next is trusted for 60 s":          {contents{Current: ending, Next: next}, settle, servingcert.Switch, 0},
		"next is garbage":                   {contents{Current: good, Next: garbage}, time.Hour, servingcert.Prepare, 0},
		"next is half":                      {contents{Current: good, Next: servingcert.Pair{Key: next.Key}}, time.Hour, servingcert.Prepare, 0},
		"switched, old not yet seen by all": {contents{Current: next, Old: ending.Certificate}, notYet, servingcert.Keep, 0},
		"switched 20 s ago": {contents{Current: next, Old: ending.Certificate}, 20 * time.Second,
			servingcert.Keep, 40 * time.Second},
		"switched 60 s ago":    {contents{Current: next, Old: ending.Certificate}, settle, servingcert.Forget, 0},
		"old is garbage":       {contents{Current: good, Old: []byte("garbage")}, settle, servingcert.Forget, 0},
		"next and old at once": {contents{Current: good, Next: next, Old: ending.Certificate}, settle, servingcert.Switch, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := servingcert.Decide(c.contents, names, noon, c.settled, settle)
			if got.Action != c.action || got.Again != c.again {
				t.Errorf("got %s (%s), again in %s; want %s, %s", got.Action, got.Reason, got.Again, c.action, c.again)
			}
			if (got.Reason == "") != (got.Action == servingcert.Keep) {
				t.Errorf("%s because %q", got.Action, got.Reason)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	current, next, fresh := made(t, 0, names...), made(t, 0, names...), made(t, 0, names...)
	before := servingcert.Contents{Current: current, Next: next, Old: []byte("old")}
	for action, want := range map[servingcert.Action]servingcert.Contents{
		servingcert.Keep:    before,
		servingcert.Replace: {Current: fresh},
		servingcert.Prepare: {Current: current, Next: fresh, Old: []byte("old")},
		servingcert.Switch:  {Current: next, Old: current.Certificate},
		servingcert.Forget:  {Current: current},
	} {
		got := before.After(action, fresh)
		if !got.Equal(want) {
			t.Errorf("%s: %s", action, cmp.Diff(want, got))
		}
		if again := servingcert.Read(got.Data()); !again.Equal(got) {
			t.Errorf("%s: read back: %s", action, cmp.Diff(got, again))
		}
		for key, value := range got.Data() {
			if len(value) == 0 {
				t.Errorf("%s: key %s without a value", action, key)
			}
		}
	}
}

func TestBundle(t *testing.T) {
	a, b := made(t, 0, names...), made(t, 0, names...)
	prepared := servingcert.Contents{Current: a, Next: b}
	switched := prepared.After(servingcert.Switch, servingcert.Pair{})
	if got := prepared.Bundle(); !bytes.Equal(got, switched.Bundle()) || len(got) != len(a.Certificate)+len(b.Certificate) {
		t.Errorf("a switch changes the bundle, or it doesn't hold both:\n%s", got)
	}
	if got := switched.After(servingcert.Forget, servingcert.Pair{}).Bundle(); !bytes.Equal(got, b.Certificate) {
		t.Errorf("at the end it holds\n%s", got)
	}
	same := servingcert.Contents{Current: a, Next: a, Old: a.Certificate}
	if got := same.Bundle(); !bytes.Equal(got, a.Certificate) {
		t.Errorf("one certificate stands there twice:\n%s", got)
	}
	// Whatever a user has written into the Secret, the bundle has neither a key nor text that can't be parsed.
	mixed := servingcert.Contents{
		Current: servingcert.Pair{Certificate: append(bytes.Clone(a.Key), a.Certificate...)}, Next: garbage,
		Old: []byte("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
	}
	if got := mixed.Bundle(); !bytes.Equal(got, a.Certificate) {
		t.Errorf("got\n%s", got)
	}
	if got := (servingcert.Contents{Current: garbage}).Bundle(); len(got) != 0 {
		t.Errorf("garbage is in the bundle: %s", got)
	}
}

// cluster simulates a rotation second by second. It has a Secret, a bundle, and a leader that makes one write in a second. Another leader
// may replace it at any moment.
type cluster struct {
	secret []servingcert.Contents // by second
	bundle [][]byte               // by second
	held   servingcert.Contents
	since  int // the second since which the bundle fits held; -1: not known
	steps  []servingcert.Action
}

// tick simulates one second, in which the leader makes at most one write.
func (c *cluster) tick(t *testing.T) {
	now := len(c.secret)
	contents, bundle := c.secret[now-1], c.bundle[now-1]
	settled := notYet
	if bytes.Equal(bundle, contents.Bundle()) {
		if c.since < 0 || !c.held.Equal(contents) {
			c.held, c.since = contents, now
		}
		settled = time.Duration(now-c.since) * time.Second
	}
	at := noon.Add(time.Duration(now) * time.Second)
	step := servingcert.Decide(contents, names, at, settled, settle)
	switch {
	case step.Action != servingcert.Keep:
		fresh, err := servingcert.New(names, at)
		if err != nil {
			t.Fatal(err)
		}
		contents = contents.After(step.Action, fresh)
		c.steps = append(c.steps, step.Action)
	default:
		bundle = contents.Bundle()
	}
	c.secret, c.bundle = append(c.secret, contents), append(c.bundle, bundle)
}

// A replica may serve a certificate that is ten seconds old, and an API server may have a bundle that is ten seconds old. The served
// certificate is in that bundle all the same, even if the leader dies or hangs at any moment.
func TestWhatIsServedIsTrusted(t *testing.T) {
	const late = 10
	ending := servingcert.Contents{Current: made(t, 61*day, names...)}
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := &cluster{since: -1}
		for range late + 1 {
			c.secret, c.bundle = append(c.secret, ending), append(c.bundle, ending.Bundle())
		}
		for range 600 {
			switch random.IntN(40) {
			case 0: // another leader, which knows nothing
				c.since = -1
				fallthrough
			case 1: // another leader takes over, which doesn't know since when the bundle fits
				c.secret, c.bundle = append(c.secret, c.secret[len(c.secret)-1]), append(c.bundle, c.bundle[len(c.bundle)-1])
			default:
				c.tick(t)
			}
		}
		// Few of the leaders above last a minute; this one does.
		for range 4 * 60 {
			c.tick(t)
		}
		for now := late; now < len(c.secret); now++ {
			for _, served := range c.secret[now-late : now+1] {
				for _, bundle := range c.bundle[now-late : now+1] {
					if !bytes.Contains(bundle, served.Current.Certificate) {
						t.Fatalf("seed %d, second %d: what is served isn't trusted; steps %v", seed, now, c.steps)
					}
				}
			}
		}
		want := []servingcert.Action{servingcert.Prepare, servingcert.Switch, servingcert.Forget}
		if diff := cmp.Diff(want, c.steps); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
		last := len(c.secret) - 1
		if got := c.secret[last]; got.Equal(ending) || !bytes.Equal(c.bundle[last], got.Current.Certificate) {
			t.Errorf("seed %d: at the end there isn't one new certificate", seed)
		}
	}
}
