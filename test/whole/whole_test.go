// Package whole_test runs histories of the whole operator in one process and in virtual time, on a model of the API server.
package whole_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/operator"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/whole/oracle"
	"github.com/warren-tenancy/warren/test/whole/sim"
	"github.com/warren-tenancy/warren/test/whole/story"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// They remember the time of the last error, and sleep until that time is over: each bubble begins in the year 2000 again.
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// settings returns the settings of a cluster with all that overlay open installs, except what the operator's webhooks need.
func settings(t *testing.T) sim.Settings {
	t.Helper()
	rendered, err := devcluster.Render("config/overlays/open")
	if err != nil {
		t.Fatal(err)
	}
	content := []byte(rendered.Configuration())
	parsed, err := configfile.Parse("config.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, u := range append(rendered.Definitions(), rendered.Rest()...) {
		if !strings.HasSuffix(u.GetKind(), "WebhookConfiguration") {
			objects = append(objects, u)
		}
	}
	return sim.Settings{File: &operator.ConfigFile{Content: content, Config: parsed}, Objects: objects}
}

// numberFrom reads a number from the environment.
func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", variable, text, err)
	}
	return n
}

const (
	freshSeeds     = 1_000_000
	usualHistories = 20
	// usualRequestHistories are those of sudo on request.
	usualRequestHistories = 6
	usualEvents           = 60
	// usualSeed is the first of the seeds of make test. More histories than the usual have fresh seeds, and may find what nobody knows yet.
	usualSeed = 50_000
	// hang is the real time after which a history is taken to be stuck: somebody in the bubble waits for what is outside of it, or computes
	// without end.
	hang = 5 * time.Minute
)

// cases are what the oracles judge.
var cases = map[string]string{
	"FLT-M21": "an operator that starts in a cluster that has settled writes nothing",
	"FLT-M22": "when all faults have ended, the whole operator writes nothing more within 40 minutes, and no controller panics",
	"FLT-M23": "no write of the operator raises a share so that the shares below a limit exceed it",
	"FLT-M24": "the operator puts nobody into a binding whom the tenant never listed; at rest, bindings have only those on the lists",
	"FLT-M25": "the operator neither changes nor deletes an object that others have made",
	"FLT-M26": "at rest, observedGeneration of every status and condition is the generation",
	"FLT-M27": "at each moment, only who has a request in force may become a tenant's temporary sudoer; one that may be granted soon is",
}

// judged is the case that each oracle judges.
var judged = map[string]string{oracle.Restart: "FLT-M21", oracle.Quiet: "FLT-M22", "panic": "FLT-M22", oracle.Shares: "FLT-M23",
	oracle.People: "FLT-M24", oracle.Others: "FLT-M25", oracle.Generation: "FLT-M26", oracle.Sudo: "FLT-M27"}

func TestHistories(t *testing.T) { playAll(t, story.NewScript, usualHistories) }

func TestRequestHistories(t *testing.T) { playAll(t, story.NewRequestScript, usualRequestHistories) }

// playAll plays the histories of many seeds.
func playAll(t *testing.T, newScript func(seed uint64, events int) story.Script, usual uint64) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	histories, events := numberFrom(t, "WHOLE_HISTORIES", usual), int(numberFrom(t, "WHOLE_EVENTS", usualEvents))
	first := numberFrom(t, "WHOLE_SEED", usualSeed)
	if os.Getenv("WHOLE_SEED") == "" && histories > usual {
		first = rand.Uint64N(freshSeeds)
	}
	if histories > batch {
		runBatches(t, first, histories)
		return
	}
	with := settings(t)
	if os.Getenv("WHOLE_LOG") != "" {
		with.Log = func(line string) { fmt.Println(line) }
	}
	total, begun, failures := totals{}, time.Now(), map[string]string{}
	for seed := first; seed < first+histories; seed++ {
		script := newScript(seed, events)
		result := play(t, script, with)
		total.add(result)
		if found := withoutKnown(result.Found); len(found) > 0 && failures[found[0].Oracle] == "" {
			failures[found[0].Oracle] = explain(t, script, with, found)
		}
	}
	t.Logf("seeds %d to %d: %s, in %s", first, first+histories-1, total, time.Since(begun).Round(time.Second))
	fmt.Println(total.line())
	for number, says := range cases {
		t.Run(number+" "+says, func(t *testing.T) {
			for of, why := range failures {
				if judged[of] == number {
					t.Error(why)
				}
			}
		})
	}
}

// explain describes a history that failed, as short as it can be.
func explain(t *testing.T, script story.Script, with sim.Settings, found []oracle.Finding) string {
	t.Helper()
	why := ""
	for _, f := range found[:min(len(found), 10)] {
		why += fmt.Sprintf("seed %d: %s\n", script.Seed, f)
	}
	if within := numberFrom(t, "WHOLE_SHRINK", 0); within > 0 {
		script = story.Shrink(script, func(s story.Script) bool {
			for _, f := range withoutKnown(play(t, s, with).Found) {
				if f.Oracle == found[0].Oracle {
					return true
				}
			}
			return false
		}, time.Duration(within)*time.Second)
	}
	return why + script.String()
}

// play runs a script in a bubble of its own.
func play(t *testing.T, script story.Script, with sim.Settings) (result story.Result) {
	t.Helper()
	watchdog := time.AfterFunc(hang, func() {
		stacks := make([]byte, 16<<20)
		fmt.Fprintf(os.Stderr, "seed %d hangs:\n%s\n", script.Seed, stacks[:runtime.Stack(stacks, true)])
		os.Exit(2)
	})
	defer watchdog.Stop()
	// Some goroutines of libraries never end, and wait for nothing that could come. The bubble's end reports them by a panic.
	defer func() {
		if left := recover(); left != nil && !strings.Contains(fmt.Sprint(left), "blocked goroutines remain") {
			panic(left)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if wrong := recover(); wrong != nil {
				result.Found = append(result.Found, oracle.Finding{Oracle: "panic", Text: fmt.Sprintf("%v\n%s", wrong, debug.Stack())})
			}
		}()
		result = story.Run(script, with)
	})
	return result
}
