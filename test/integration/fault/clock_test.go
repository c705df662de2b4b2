package fault_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
)

// steps is a file that is compiled into the operator. It reads again and again, from another file, how many seconds the operator's clock
// is ahead.
const steps = `package main

import (
	"fmt"
	"os"
	"time"
)

func step() {
	text, err := os.ReadFile(os.Getenv("CLOCK"))
	if err != nil {
		panic(err)
	}
	var ahead int64
	if _, err := fmt.Sscan(string(text), &ahead); err == nil { // it is empty while it is written
		time.Ahead.Store(ahead)
	}
}

func init() {
	step()
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			step()
		}
	}()
}
`

// withClock builds an operator whose clock can be set. As on a real machine, that changes only the time of day: timers and durations
// follow the monotonic clock.
func withClock(ctx context.Context) (path string) {
	GinkgoHelper()
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	stepped := string(text)
	for _, edit := range []struct{ old, now string }{
		{"import (", "import (\n\t\"sync/atomic\""},
		{"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "var Ahead atomic.Int64\n\nfunc Now() Time {\n" +
			"\tsec, nsec, mono := runtimeNow()\n\tsec += Ahead.Load()\n"},
	} {
		Expect(strings.Count(stepped, edit.old)).To(Equal(1), "%s has %q once", file, edit.old)
		stepped = strings.Replace(stepped, edit.old, edit.now, 1)
	}
	path, err = devcluster.BuildManagerWith(ctx, "manager-clock", map[string]string{file: stepped, "step.go": steps})
	Expect(err).NotTo(HaveOccurred())
	return path
}

// clock is the file that says how far the operator's clock is ahead of that of all others, or behind.
type clock string

func (c clock) set(ahead time.Duration) {
	GinkgoHelper()
	Expect(os.WriteFile(string(c), fmt.Append(nil, int64(ahead.Seconds())), 0o600)).To(Succeed())
}

var _ = Describe("an operator whose clock is wrong", Ordered, ContinueOnFailure, func() {
	It("FLT-F36 with a clock an hour wrong, from its start or the middle of a story (`make test-long`), stories end as without; no Lease is "+
		"lost, certificates are valid", func(ctx SpecContext) {
		skipUnlessLong("the build of all packages with another clock")
		now := clock(filepath.Join(GinkgoT().TempDir(), "clock"))
		now.set(time.Hour) // now the operator makes its webhooks' certificate; the API server's clock is an hour behind
		st := newStage(ctx, devcluster.Options{Webhooks: true, Operator: devcluster.OperatorOptions{
			Manager: withClock(ctx), Env: []string{"CLOCK=" + string(now)}, Args: []string{"--leader-elect"},
		}})
		by := func(name string, ahead time.Duration) fault {
			return fault{name: name, at: func(*stage, int, gate.Request) gate.Fault {
				now.set(ahead)
				return gate.Fault{Delay: 100 * time.Millisecond} // until the operator has read the file
			}}
		}
		life := st.now()
		holder, err := st.holder(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, story := range stories {
			now.set(0)
			calm := st.rehearse(ctx, story)
			for _, fault := range []fault{by("ahead", time.Hour), by("behind", -time.Hour)} {
				Expect(wrongOf(st.playPlans(ctx, story, calm, []plan{{fault: fault, write: 1 + calm.writes/2}}))).To(BeEmpty())
			}
		}
		Expect(st.holder(ctx)).To(Equal(holder), "no Lease was lost")
		Expect(st.now()).To(Equal(life))

		for _, fault := range []fault{by("starts-ahead", time.Hour), by("starts-behind", -time.Hour)} { // from its start on
			fault.at(st, 0, gate.Request{})
			life := st.now()
			st.terminate(life)
			Eventually(ctx, st.isReady).WithArguments(life + 1).Should(BeTrue())
			Expect(wrongOf(st.playPlans(ctx, stories[0], st.rehearse(ctx, stories[0]), []plan{{fault: fault, write: 1}}))).To(BeEmpty())
		}
		st.checkProcess()
	}, SpecTimeout(40*time.Minute))
})
