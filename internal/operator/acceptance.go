package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/guard"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/pause"
	"github.com/warren-tenancy/warren/internal/preview"
	"github.com/warren-tenancy/warren/internal/text"
)

var configInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "warren_config_info", Help: "1 for the hash of the configuration file in force.",
}, []string{"hash"})

func init() { metrics.Registry.MustRegister(configInfo) }

// ConfigFile is a configuration file that was read and found valid.
type ConfigFile struct {
	Content []byte
	Config  *config.OperatorConfiguration
}

// LoadConfigFile reads the file at path; without a path, the defaults hold. Its error has one line for each problem.
func LoadConfigFile(path string) (*ConfigFile, error) {
	content := []byte("apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n")
	if path != "" {
		var err error
		if content, err = configfile.Read(path); err != nil {
			return nil, err
		}
	}
	c, err := configfile.Parse(path, content)
	return &ConfigFile{Content: content, Config: c}, err
}

// acceptance holds back a configuration file that would take much away, and records in the cluster the file that is in force. A process
// whose file is not accepted isn't ready and changes nothing; in a roll-out, the processes with the old file go on meanwhile. acceptance is
// also a Runnable, which writes the record.
type acceptance struct {
	api       client.Client // reads past the cache
	namespace string        // the operator's own
	file      *ConfigFile
	pause     time.Duration // until a file that was refused, or could not be checked, is checked again

	mu   sync.Mutex // guards held
	held error      // why the file isn't in force
}

// addAcceptance has the manager begin its work only when the file is accepted.
func (s *setup) addAcceptance(file *ConfigFile) error {
	api, err := client.New(s.mgr.GetConfig(), client.Options{Scheme: s.mgr.GetScheme(), HTTPClient: s.mgr.GetHTTPClient(),
		Mapper: s.mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client that reads past the cache: %w", err)
	}
	a := &acceptance{
		api: api, namespace: s.namespace, file: file, pause: s.timing.JudgeFile,
		held: errors.New("the operator has not checked the configuration file yet"),
	}
	for _, warning := range configfile.Warnings(file.Config) {
		configLog().Info("warning", "text", warning)
	}
	s.mgr.beforeStart = a.waitForAcceptance
	return errors.Join(s.mgr.AddReadyzCheck("configuration", a.ready), s.mgr.Add(a))
}

func configLog() logr.Logger { return ctrl.Log.WithName("configuration") }

// waitForAcceptance returns when the file is accepted, or when ctx is done.
func (a *acceptance) waitForAcceptance(ctx context.Context) {
	for told := ""; ; {
		refusal := a.checkFile(ctx)
		a.recordReason(refusal)
		if refusal == nil {
			hash := sha256.Sum256(a.file.Content)
			configInfo.WithLabelValues(hex.EncodeToString(hash[:])).Set(1)
			return
		}
		if why := refusal.Error(); why != told && ctx.Err() == nil {
			told = why
			configLog().Error(refusal, "the configuration file is not accepted: this process is not ready, and changes nothing")
			sendFileEvent(ctx, a.api, a.namespace, v1alpha1.ReasonRemovalsHeld, why)
		}
		if pause.For(ctx, a.pause) != nil {
			return
		}
	}
}

// checkFile returns why the file must not come into force now; nil if it may.
func (a *acceptance) checkFile(ctx context.Context) error {
	record, err := a.readRecord(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		configLog().Info("the operator accepts a changed configuration file without a check of what it removes, because it can't "+
			"read the record of the file in force; make deploy installs what is missing", "reason", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the configuration file that was in force: %w", err)
	}
	old := configfile.ParseRecorded([]byte(record.Data[recordKey]))
	if old == nil {
		return nil // the first start: there is nothing to compare with
	}
	refusal, err := preview.Refusal(ctx, a.api, old, a.file.Config, a.namespace)
	if refusal != "" {
		err = errors.New(refusal)
	}
	return err
}

func (a *acceptance) recordReason(reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = reason
}

// ready is a readiness check: it fails until the file is in force.
func (a *acceptance) ready(*http.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// The ConfigMap in which the leader records the file that is in force, under recordKey. The manifests install it empty.
const (
	recordName = v1alpha1.AcceptedConfigName
	recordKey  = "config.yaml"
)

func (a *acceptance) readRecord(ctx context.Context) (*corev1.ConfigMap, error) {
	record := &corev1.ConfigMap{}
	return record, a.api.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: recordName}, record)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (a *acceptance) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it records the file of the process that leads.
func (a *acceptance) Start(ctx context.Context) error {
	for {
		err := a.writeRecord(ctx)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		configLog().Error(err, "recording the configuration file that is in force; trying again")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.pause):
		}
	}
}

func (a *acceptance) writeRecord(ctx context.Context) error {
	record, err := a.readRecord(ctx)
	if err != nil || record.Data[recordKey] == string(a.file.Content) {
		return err
	}
	record.Data = map[string]string{recordKey: string(a.file.Content)}
	return a.api.Update(ctx, record)
}

// ReportInvalidFile sends an Event that explains why the configuration file is invalid, where kubectl describe shows it. Without access to
// an API server it does nothing.
func ReportInvalidFile(ctx context.Context, o *Options, problem error) {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if api, err := client.New(cfg, client.Options{}); err == nil {
		sendFileEvent(ctx, api, o.OperatorNamespace, v1alpha1.ReasonInvalidConfiguration, problem.Error())
	}
}

// sendFileEvent sends one Event about the configuration file to the operator's Deployment, while there is no manager yet that could send
// it. The process continues whether or not the Event arrives, so an error is only logged.
func sendFileEvent(ctx context.Context, api client.Client, namespace string, reason v1alpha1.Reason, message string) {
	now := metav1.Now()
	err := api.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: v1alpha1.OperatorAccount + "."},
		InvolvedObject: *guard.Deployment(namespace), Type: corev1.EventTypeWarning, Reason: string(reason),
		Message: text.Cut(message, text.EventBytes),
		Source:  corev1.EventSource{Component: v1alpha1.OperatorName}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil && ctx.Err() == nil {
		configLog().Info("an Event about the configuration file could not be sent", "reason", err.Error())
	}
}
