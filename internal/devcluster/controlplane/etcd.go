package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/warren-tenancy/warren/internal/devcluster/process"
)

// SaveEtcd copies what etcd holds into a folder that must not exist yet. etcd stands still meanwhile.
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

// RestoreEtcd brings etcd back to what SaveEtcd has copied, as Kubernetes asks for: API server and controllers stand still meanwhile.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context, from string) error {
	if err := errors.Join(cp.Controllers.Stop(), cp.APIServer.Stop(), cp.Etcd.Stop(), os.RemoveAll(cp.file("etcd"))); err != nil {
		return err
	}
	if err := os.CopyFS(cp.file("etcd"), os.DirFS(from)); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	if err := cp.resumeEtcd(ctx); err != nil {
		return err
	}
	return errors.Join(cp.APIServer.Start(), cp.Controllers.Start(), cp.Ready(ctx))
}

func (cp *ControlPlane) resumeEtcd(ctx context.Context) error {
	return cp.Etcd.StartReady(ctx, process.HTTPOK(nil, cp.etcdURL+"/readyz"))
}
