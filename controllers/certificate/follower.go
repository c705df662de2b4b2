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

// follower serves what stands in the Secret, in every replica. As long as that can't be served it goes on with what it
// has.
type follower struct {
	client  client.Reader
	serving *Serving
	names   []string
	log     logr.Logger
	// elected is closed when this replica leads.
	elected <-chan struct{}
	// looked is set when the Secret was seen, trusted when the configurations had the certificate.
	looked, trusted atomic.Bool
}

func (f *follower) watchSecret(ctx context.Context, objects cache.Cache) error {
	secrets, err := objects.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the Secret of the certificate: %w", err)
	}
	_, err = secrets.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.seen(object.(*corev1.Secret)) },
		UpdateFunc: func(_, object any) { f.seen(object.(*corev1.Secret)) },
	})
	return err
}

func (f *follower) seen(secret *corev1.Secret) {
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

// checkReady says whether this replica can be called: it serves a certificate, and the API server was told once to trust it.
// What becomes of the configurations later is no reason to send nobody here.
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

// isExcused says that there is no certificate and that this replica can't make one. Were it not ready, an upgrade would
// wait for ever for a leader of an earlier version that makes none.
func (f *follower) isExcused() bool {
	select {
	case <-f.elected:
		return false
	default:
		return f.looked.Load()
	}
}
