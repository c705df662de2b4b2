package certificate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/warren-tenancy/warren/internal/servingcert"
)

// follower serves the certificate in the Secret, in every replica. While the Secret holds none that can be served, the
// replica keeps serving its last one.
type follower struct {
	client  client.Reader
	serving *Serving
	names   []string
	log     logr.Logger
	// elected is closed when this replica becomes the leader.
	elected <-chan struct{}
	// looked is set when the replica has seen the Secret, trusted when the webhook configurations have had this
	// replica's certificate.
	looked, trusted atomic.Bool
}

func (f *follower) watchSecret(ctx context.Context, objects cache.Cache) error {
	secrets, err := objects.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the Secret of the certificate: %w", err)
	}
	_, err = secrets.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.takeSecret(object.(*corev1.Secret)) },
		UpdateFunc: func(_, object any) { f.takeSecret(object.(*corev1.Secret)) },
	})
	return err
}

func (f *follower) takeSecret(secret *corev1.Secret) {
	// Whatever it holds: isExcused asks only whether the Secret was seen.
	defer f.looked.Store(true)
	pair, err := servingcert.Judge(servingcert.Read(secret.Data).Current, f.names, time.Now())
	if err != nil {
		f.log.Info("the Secret holds no certificate to serve", "reason", err.Error())
		return
	}
	if f.serving.exchangeCertificate(pair) {
		expiry.Set(float64(pair.Leaf.NotAfter.Unix()))
		f.log.Info("serving a certificate", "serial", pair.Leaf.SerialNumber.Text(16), "notAfter", pair.Leaf.NotAfter)
	}
}

// checkReady returns a check whether the API server can call this replica: it serves a certificate, and the webhook
// configurations have held a certificate that it served. A replica without a certificate is ready only if isExcused
// reports true. A later change of the configurations concerns all replicas alike, so it makes none of them unready.
func (f *follower) checkReady(started healthz.Checker) healthz.Checker {
	return func(req *http.Request) error {
		c, err := f.serving.GetCertificate(nil)
		if err != nil {
			if f.isExcused() {
				return nil
			}
			return err
		}
		if !f.trusted.Load() {
			trusted, err := trustsCertificate(req.Context(), f.client, c.Leaf)
			if err != nil {
				return err
			}
			if !trusted {
				return errors.New("the webhook configurations don't have the certificate yet")
			}
			f.trusted.Store(true)
		}
		return started(req)
	}
}

// isExcused reports whether this replica may be ready without a certificate: it has seen the Secret, but is not the
// leader and so can't make one. Otherwise an upgrade could wait for ever for the leader of an earlier version, which
// makes no certificate.
func (f *follower) isExcused() bool {
	select {
	case <-f.elected:
		return false
	default:
		return f.looked.Load()
	}
}
