package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: the kernel reports them to programs in hundredths of a second, whatever clock it has itself.
const tick = 10 * time.Millisecond

// CPU returns the CPU time that the process has used since it was last started; 0 if it doesn't run.
func (p *Process) CPU() time.Duration {
	if p == nil || !p.Running() {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses. Fields 14 and 15 are the times in user and kernel mode (proc(5)).
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
