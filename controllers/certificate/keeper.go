package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/servingcert"
)

// keeper rotates the certificate. Only the leader runs it, so no two rotations run at once.
type keeper struct {
	client client.Client
	events record.EventRecorder
	timing Timing
	log    logr.Logger
	secret client.ObjectKey
	names  []string
	sync   bundles
	// failure is the last error that was reported, so that each is reported once.
	failure string
}

// rotateStep takes the next step of the rotation.
func (k *keeper) rotateStep(ctx context.Context) (again time.Duration, err error) {
	again, err = k.planStep(ctx)
	switch {
	case apierrors.IsConflict(err), errors.Is(err, errOutdated):
		return time.Second, nil // the cache will bring the newer object
	case err != nil:
		k.announceFailure(err)
		return k.timing.Retry, nil
	}
	k.failure = ""
	// The wait is an hour at most: the certificate expires by the wall clock, which may step.
	return min(again, time.Hour), nil
}

// planStep decides on one step and takes it. It first decides as if the bundle were not in the configurations yet,
// since some steps can't wait for that. If that gives no step, it writes the bundle there, and decides by how long the
// bundle has been there.
func (k *keeper) planStep(ctx context.Context) (again time.Duration, err error) {
	var secret corev1.Secret
	if err := k.client.Get(ctx, k.secret, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("secret %s is missing, and the operator may not make it: apply the manifests again", k.secret)
		}
		return 0, fmt.Errorf("reading Secret %s: %w", k.secret, err)
	}
	contents := servingcert.Read(secret.Data)
	const notYet = -1
	if urgent := servingcert.Decide(contents, k.names, time.Now(), notYet, k.timing.Settle); urgent.Action != servingcert.Keep {
		return 0, k.writeSecret(ctx, &secret, contents, urgent)
	}
	settled, err := k.sync.holdBundle(ctx, contents)
	if err != nil {
		return 0, err
	}
	step := servingcert.Decide(contents, k.names, time.Now(), settled, k.timing.Settle)
	if step.Action != servingcert.Keep {
		return 0, k.writeSecret(ctx, &secret, contents, step)
	}
	return step.Again, nil
}

// writeSecret writes the Secret as the step changes it. The watch event of that write causes the next step.
func (k *keeper) writeSecret(ctx context.Context, secret *corev1.Secret, contents servingcert.Contents, step servingcert.Step) error {
	var fresh servingcert.Pair
	if step.Action == servingcert.Replace || step.Action == servingcert.Prepare {
		var err error
		if fresh, err = servingcert.New(k.names, time.Now()); err != nil {
			return err
		}
	}
	contents = contents.After(step.Action, fresh)
	written := secret.DeepCopy()
	written.Data = contents.Data()
	if err := k.client.Update(ctx, written); err != nil { // the resourceVersion guards it
		if !apierrors.IsConflict(err) {
			rotations.WithLabelValues("error").Inc()
		}
		return fmt.Errorf("writing Secret %s: %w", k.secret, err)
	}
	k.log.Info("the certificate's Secret was written", "step", step.Action, "reason", step.Reason)
	if step.Action == servingcert.Switch || step.Action == servingcert.Replace {
		k.announceRotation(contents.Current, step.Reason)
	}
	return nil
}

func (k *keeper) announceRotation(pair servingcert.Pair, reason string) {
	rotations.WithLabelValues("success").Inc()
	until := "an unknown time"
	if c, err := servingcert.Judge(pair, k.names, time.Now()); err == nil {
		until = c.Leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	k.events.Eventf(k.deploymentReference(), corev1.EventTypeNormal, string(v1alpha1.ReasonCertificateRotated),
		"the webhooks serve a new certificate, valid until %s, because %s", until, reason)
}

// announceFailure logs an error and sends an Event, unless the last announced failure had the same text.
func (k *keeper) announceFailure(err error) {
	if k.failure == err.Error() {
		return
	}
	k.failure = err.Error()
	k.log.Error(err, "managing the certificate of the webhooks failed; the operator tries again")
	k.events.Event(k.deploymentReference(), corev1.EventTypeWarning, string(v1alpha1.ReasonCertificateFailed), k.failure)
}

// deploymentReference refers to the operator's Deployment, where a cluster admin looks for Events. It has no UID,
// because the operator may not read the Deployment.
func (k *keeper) deploymentReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: k.secret.Namespace, Name: v1alpha1.OperatorAccount,
	}
}
