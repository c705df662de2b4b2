package whole_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/test/whole/sim"
	"github.com/warren-tenancy/warren/test/whole/story"
)

// batch is how many histories one process runs at most: each leaves some goroutines of libraries, and the process has one registry of
// metrics, so its histories run one after the other.
const batch = 40

// totals are what histories have cost together.
type totals struct {
	Histories, Applied int
	Virtual            time.Duration
	Counts             sim.Counts
}

func (t *totals) add(r story.Result) {
	t.Histories++
	t.Applied += r.Applied
	t.Virtual += r.Virtual
	t.Counts.Add(r.Counts)
}

// String describes the totals in one line.
func (t totals) String() string {
	return fmt.Sprintf("%d histories, %.1f virtual hours, %d deeds, %d starts, %d requests, %d deliveries of watches, %d faults; "+
		"%d questions about sudo, %d answered yes", t.Histories,
		t.Virtual.Hours(), t.Applied, t.Counts.Starts, t.Counts.Requests, t.Counts.Events, t.Counts.Faults, t.Counts.Questions,
		t.Counts.Granted)
}

const mark = "whole totals: "

// line is how a process tells the one that started it.
func (t totals) line() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers alone
	}
	return mark + string(text)
}

// runBatches runs histories in processes of their own, one for each core at a time.
func runBatches(t *testing.T, first, histories uint64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	outputs := make(chan string, histories/batch+1)
	running := errgroup.Group{}
	running.SetLimit(runtime.GOMAXPROCS(0))
	for from := uint64(0); from < histories; from += batch {
		running.Go(func() error {
			command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3h")
			command.Env = append(os.Environ(), fmt.Sprint("WHOLE_SEED=", first+from), fmt.Sprint("WHOLE_HISTORIES=", min(batch, histories-from)),
				"GOMAXPROCS=1")
			output, err := command.CombinedOutput()
			outputs <- string(output)
			if err != nil {
				t.Errorf("seeds from %d: %v\n%s", first+from, err, output)
			}
			return nil
		})
	}
	_ = running.Wait() // errors are failures of the test
	close(outputs)
	all := totals{}
	for output := range outputs {
		for text := range strings.Lines(output) {
			one := totals{}
			if body, found := strings.CutPrefix(text, mark); found && json.Unmarshal([]byte(body), &one) == nil {
				all.Histories += one.Histories
				all.Applied += one.Applied
				all.Virtual += one.Virtual
				all.Counts.Add(one.Counts)
			}
		}
	}
	t.Logf("seeds %d to %d: %s, in %s", first, first+histories-1, all, time.Since(begun).Round(time.Second))
}
