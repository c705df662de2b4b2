package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// SaveEtcd copies etcd's data into a folder that must not exist yet. etcd is stopped meanwhile.
func (cp *ControlPlane) SaveEtcd(ctx context.Context, to string) error {
	if err := cp.Etcd.Stop(); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(cp.file("etcd"))); err != nil {
		return fmt.Errorf("saving etcd: %w", err)
	}
	if err := cp.resumeEtcd(ctx); err != nil {
		return err
	}
	return cp.Ready(ctx)
}

// StopAndKeep ends the control plane as Stop does, but first moves etcd's data into a folder that must not exist yet.
func (cp *ControlPlane) StopAndKeep(dir string) error {
	err := cp.stopProcesses()
	if err == nil {
		err = trimLog(filepath.Join(cp.file("etcd"), "member", "wal"))
	}
	if err == nil {
		err = os.Rename(cp.file("etcd"), dir)
	}
	return errors.Join(err, cp.Stop())
}

// trimLog cuts the zeros off etcd's log, which has 64 MB from the beginning.
func trimLog(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		if filepath.Ext(file) != ".wal" { // the next log, with nothing but zeros
			err = errors.Join(err, os.Remove(file))
			continue
		}
		content, readErr := os.ReadFile(file)
		if readErr != nil {
			return readErr
		}
		const page = 4096
		used := len(bytes.TrimRight(content, "\x00")) + page
		err = errors.Join(err, os.Truncate(file, int64(min(len(content), used-used%page+page))))
	}
	return err
}

// RestoreEtcd replaces etcd's data by the copy of SaveEtcd. API server and controllers are stopped meanwhile, as Kubernetes'
// documentation requires.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context, from string) error {
	if err := errors.Join(cp.Controllers.Stop(), cp.APIServer.Stop(), cp.Etcd.Stop(), os.RemoveAll(cp.file("etcd"))); err != nil {
		return err
	}
	if err := cp.fillEtcd(from); err != nil {
		return err
	}
	if err := cp.resumeEtcd(ctx); err != nil {
		return err
	}
	return errors.Join(cp.APIServer.Start(), cp.Controllers.Start(), cp.Ready(ctx))
}

// fillEtcd copies saved data to where etcd, which doesn't run, has its own.
func (cp *ControlPlane) fillEtcd(from string) error {
	if err := os.CopyFS(cp.file("etcd"), os.DirFS(from)); err != nil {
		return fmt.Errorf("filling etcd: %w", err)
	}
	return nil
}

func (cp *ControlPlane) resumeEtcd(ctx context.Context) error {
	return cp.Etcd.StartReady(ctx, process.HTTPOK(nil, cp.etcdURL+"/readyz"))
}

// CompactEtcd makes etcd drop all old revisions. A running API server still has the events in its own watch cache.
func (cp *ControlPlane) CompactEtcd(ctx context.Context) error {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := cp.askEtcd(ctx, "/v3/kv/range", map[string]any{"key": "AA=="}, &answer); err != nil {
		return err
	}
	return cp.askEtcd(ctx, "/v3/kv/compaction", map[string]any{"revision": answer.Header.Revision, "physical": true}, &struct{}{})
}

// AlarmEtcd raises the alarm that etcd is out of space, after which etcd refuses writes, or ends the alarm.
func (cp *ControlPlane) AlarmEtcd(ctx context.Context, raised bool) error {
	var status struct {
		Header struct {
			MemberID string `json:"member_id"`
		} `json:"header"`
	}
	if err := cp.askEtcd(ctx, "/v3/maintenance/status", map[string]any{}, &status); err != nil {
		return err
	}
	action := "DEACTIVATE"
	if raised {
		action = "ACTIVATE"
	}
	return cp.askEtcd(ctx, "/v3/maintenance/alarm", map[string]any{"action": action, "memberID": status.Header.MemberID, "alarm": "NOSPACE"},
		&struct{}{})
}

// askEtcd sends a request to etcd's HTTP gateway.
func (cp *ControlPlane) askEtcd(ctx context.Context, path string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cp.etcdURL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK {
		problem, _ := io.ReadAll(got.Body)
		return fmt.Errorf("asking etcd for %s: %s: %s", path, got.Status, problem)
	}
	if err := json.NewDecoder(got.Body).Decode(answer); err != nil {
		return fmt.Errorf("reading etcd's answer to %s: %w", path, err)
	}
	return nil
}
