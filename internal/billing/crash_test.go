package billing_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/warren-tenancy/warren/test"
)

func TestCrash(t *testing.T) {
	kills := 24
	if test.IsLong() {
		kills = 300
	}
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-10 SIGKILL at random moments loses and doubles nothing", func(t *testing.T) {
			store := e.ledger(t)
			outbox := filepath.Join(tempDir(t), "outbox.db")
			changes := 0
			for range kills {
				// The child always has more changes to make, so it is killed in the middle of its work.
				last, ended := run(t, e, outbox, changes, 1_000_000, 1+rand.IntN(60))
				if ended {
					t.Fatal("a process ended before it was killed")
				}
				changes = last + 1
			}
			changes += 50
			if _, ended := run(t, e, outbox, changes-50, changes, 0); !ended {
				t.Fatal("the last process didn't end")
			}
			t.Logf("%d changes", changes)

			if got := count(t, e.open(t), "ledger"); got != changes {
				t.Errorf("%d rows, want %d", got, changes)
			}
			if got := count(t, e.open(t), "ledger_periods"); got != changes {
				t.Errorf("%d periods, want %d", got, changes)
			}
			for tenant := range 20 {
				want := int64(tenant)
				periods, err := store.History(t.Context(), fmt.Sprint("ns-", tenant))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range periods {
					if p.Generation != want {
						t.Fatalf("tenant %d: generation %d, want %d", tenant, p.Generation, want)
					}
					want += 20
				}
			}
		})
	})
}

// run starts the child and kills it after it has printed that many lines; 0 means never. It returns the last change that the child reported
// as put into the outbox, and whether the child ended by itself.
func run(t *testing.T, e engine, outbox string, first, changes, lines int) (last int, ended bool) {
	t.Helper()
	var stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d-%d", childEnv, first, changes), "WARREN_BILLING_ENGINE="+e.dialect.Name,
		"WARREN_BILLING_DSN="+e.dsn, "WARREN_BILLING_OUTBOX="+outbox)
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	last = first - 1
	read := bufio.NewScanner(stdout)
	for n := 1; read.Scan(); n++ {
		_, _ = fmt.Sscanf(read.Text(), "put %d", &last)
		if n == lines {
			_ = child.Process.Kill()
		}
	}
	err = child.Wait()
	if child.ProcessState.Exited() && err != nil {
		t.Fatalf("the child failed by itself: %v\n%s", err, stderr.String())
	}
	return last, err == nil
}
