// Package facts records what tests cost, for the table that `make test` prints when it ends (hack/testfacts). Without FileEnv in the
// environment nothing is recorded.
package facts

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// FileEnv is the environment variable that names the file to which processes of tests append records, a line of JSON each.
const FileEnv = "WARREN_FACTS"

// Kind tells what a Record measures.
type Kind string

// The kinds. Job is one line of hack/test.sh with all that it starts, compilers and linkers included. Suite is one process of a suite with
// its children. Plane is the start of a control plane, World that of a control plane with our manifests and an operator. Life is a control
// plane from its start to its end.
const (
	Job   Kind = "job"
	Suite Kind = "suite"
	Plane Kind = "plane"
	World Kind = "world"
	Life  Kind = "life"
)

// Record is what one thing has cost. CPU is in seconds of all cores, user and system; Wall is in seconds. Case is the case of a suite that
// ran, if any.
type Record struct {
	Kind Kind    `json:"kind"`
	Name string  `json:"name"`
	Case string  `json:"case,omitempty"`
	CPU  float64 `json:"cpu"`
	Wall float64 `json:"wall"`
}

// current is the case that this process runs.
var current atomic.Value

// InCase tells which case this process runs from now on.
func InCase(name string) { current.Store(name) }

// Write appends a record. An error is ignored: no test fails because its cost could not be noted.
func Write(r Record) {
	name := os.Getenv(FileEnv)
	if name == "" {
		return
	}
	r.Case, _ = current.Load().(string)
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = f.Write(append(line, '\n')) // one write, so that lines of several processes never mix
}

// OwnCPU returns the CPU time of this process, and of those of its children that have ended.
func OwnCPU() time.Duration {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if syscall.Getrusage(who, &usage) == nil {
			all += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return all
}
