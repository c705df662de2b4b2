package sudo

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// stderrPatience is how long to wait for the end of stderr after kubectl has ended: a process that kubectl started may
// keep stderr open.
const stderrPatience = time.Second

// runChild runs a program to its end and passes signals on to it. The program has our terminal, stdin and stdout; its
// stderr goes to problems.
func runChild(path string, args []string, streams genericiooptions.IOStreams,
	problems io.Writer) (*os.ProcessState, error) {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, problems
	cmd.WaitDelay = stderrPatience
	signals, stop := catchSignals()
	defer stop()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				relaySignal(cmd.Process, s)
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, err
	}
	return cmd.ProcessState, nil
}
