package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// OperatorOptions say how an operator is run.
type OperatorOptions struct {
	// Manager is the binary; empty means the one of BuildManager.
	Manager string
	// Kubeconfig is its access to the API server.
	Kubeconfig string
	// Dir takes its log and its configuration file.
	Dir string
	// Config is the text of its configuration file; empty means that it gets none.
	Config string
	// ConfigFile is a configuration file that exists already, in place of Config.
	ConfigFile string
	// WebhookPort is where it serves its webhooks; 0 means that it serves none.
	WebhookPort int
	// Args are more flags, Env more environment variables.
	Args, Env []string
}

// Operator is an operator that runs as a process of its own. Its exported fields can be sent to another process, which may then read its
// log and metrics but not stop it.
type Operator struct {
	// LogFile takes all output of the operator, over restarts.
	LogFile string
	// ConfigFile is its configuration file, empty if it has none.
	ConfigFile string
	// MetricsURL and HealthURL are where it answers, without authentication, on loopback.
	MetricsURL, HealthURL string

	process *process.Process
}

// StartOperator starts an operator and waits until it is ready.
func StartOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	if options.Manager == "" {
		var err error
		if options.Manager, err = BuildManager(ctx); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the operator's folder: %w", err)
	}
	o := &Operator{LogFile: filepath.Join(options.Dir, "manager.log"), ConfigFile: options.ConfigFile}
	if options.Config != "" {
		o.ConfigFile = filepath.Join(options.Dir, "config.yaml")
		if err := o.WriteConfig(options.Config); err != nil {
			return nil, err
		}
	}
	err := process.OnFreePort(func(metrics int) (*process.Process, error) {
		health, err := process.FreePort()
		if err != nil {
			return nil, err
		}
		o.describeProcess(options, metrics, health)
		return o.process, o.Start(ctx)
	})
	if err != nil {
		if o.process != nil {
			err = errors.Join(err, o.process.Kill())
		}
		return nil, err
	}
	return o, nil
}

// describeProcess sets up the process, with ports for metrics and health.
func (o *Operator) describeProcess(options OperatorOptions, metrics, health int) {
	metricsAddress, healthAddress := "127.0.0.1:"+strconv.Itoa(metrics), "127.0.0.1:"+strconv.Itoa(health)
	o.MetricsURL, o.HealthURL = "http://"+metricsAddress+"/metrics", "http://"+healthAddress
	args := []string{
		"--kubeconfig=" + options.Kubeconfig,
		"--metrics-bind-address=" + metricsAddress, "--metrics-secure=false",
		"--health-probe-bind-address=" + healthAddress,
	}
	if options.WebhookPort == 0 {
		args = append(args, "--webhooks=false")
	} else {
		args = append(args, "--webhook-port="+strconv.Itoa(options.WebhookPort))
	}
	if o.ConfigFile != "" {
		args = append(args, "--config="+o.ConfigFile)
	}
	o.process = process.New(options.Manager, append(args, options.Args...), options.Env, o.LogFile)
}

// WriteConfig replaces the configuration file, which the operator reads at its next start.
func (o *Operator) WriteConfig(text string) error {
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return nil
}

// Configure replaces the configuration file, and starts the operator again.
func (o *Operator) Configure(ctx context.Context, text string) error {
	if err := o.WriteConfig(text); err != nil {
		return err
	}
	return o.Restart(ctx)
}

// Start starts the operator again, at the same addresses, and waits until it is ready.
func (o *Operator) Start(ctx context.Context) error {
	return o.process.StartReady(ctx, process.HTTPOK(nil, o.HealthURL+"/readyz"))
}

// StartAlive starts the operator again, and waits until it is alive, ready or not.
func (o *Operator) StartAlive(ctx context.Context) error {
	return o.process.StartReady(ctx, process.HTTPOK(nil, o.HealthURL+"/healthz"))
}

// Stop ends the operator by SIGTERM, waits for its end and returns its exit code.
func (o *Operator) Stop() (exitCode int, err error) {
	err = o.process.Stop()
	return o.process.ExitCode(), err
}

// Kill ends the operator by SIGKILL, as a crash would.
func (o *Operator) Kill() error { return o.process.Kill() }

// Restart stops the operator by SIGTERM and starts it again.
func (o *Operator) Restart(ctx context.Context) error {
	if _, err := o.Stop(); err != nil {
		return err
	}
	return o.Start(ctx)
}

// Sound returns an error for a data race or a panic in the log, even if the operator survived it.
func (o *Operator) Sound() error {
	log := o.Log()
	for _, sign := range []string{"WARNING: DATA RACE", "Observed a panic", "panic: "} {
		if i := strings.Index(log, sign); i >= 0 {
			return fmt.Errorf("the operator's log has %q:\n%s", sign, log[i:min(len(log), i+4000)])
		}
	}
	return nil
}

// endProcess stops the operator if it runs. An exit code other than 0 is an error. If it had ended with an error before, its last lines are
// printed: they explain why a case failed that did not want it to end.
func (o *Operator) endProcess() error {
	if !o.process.Running() {
		if code := o.process.ExitCode(); code > 0 {
			fmt.Fprintf(os.Stderr, "the operator had ended with exit code %d; the end of its log:\n%s\n", code, o.process.LogTail(20))
		}
		return o.Sound()
	}
	code, err := o.Stop()
	if code != 0 {
		err = errors.Join(err, fmt.Errorf("the operator ended with exit code %d; the end of its log:\n%s", code, o.process.LogTail(20)))
	}
	return errors.Join(err, o.Sound())
}

// Process is the operator's process, for signals and for its end; nil in a process that didn't start it.
func (o *Operator) Process() *process.Process { return o.process }

// Metrics reads its metrics endpoint.
func (o *Operator) Metrics(ctx context.Context) (Metrics, error) {
	return fetchMetrics(ctx, o.MetricsURL)
}

// Log returns all that it printed, for the output of a failure.
func (o *Operator) Log() string {
	text, err := os.ReadFile(o.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
