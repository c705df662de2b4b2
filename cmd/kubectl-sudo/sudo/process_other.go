//go:build !unix

package sudo

import (
	"os"
	"os/signal"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// replaceProcessBy runs a program to its end and exits with its status: on this operating system, no process can take
// the place of another.
func replaceProcessBy(path string, args []string) error {
	ended, err := runChild(path, args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout}, os.Stderr)
	if err != nil {
		return err
	}
	os.Exit(statusOf(ended))
	return nil
}

// catchSignals catches Ctrl-C, which the terminal sends to our child as well.
func catchSignals() (signals <-chan os.Signal, stop func()) {
	all := make(chan os.Signal, 1)
	signal.Notify(all, os.Interrupt)
	return all, func() { signal.Stop(all) }
}

func relaySignal(*os.Process, os.Signal) {}

func statusOf(ended *os.ProcessState) int { return ended.ExitCode() }
