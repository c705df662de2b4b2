package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/forest"
)

// restoreLook ends the process when etcd was restored to an older state. Resource versions then start again from a smaller number. A
// process that remembers greater numbers regards new events as old, and its writes are refused. The documentation of Kubernetes asks for a
// restart of every program that watches, after each restore. Informers, tables and answers of writes all keep the newer of two versions, so
// only a new process is free of them. It takes the restored state as correct, and writes nothing that an earlier process remembered. The
// revision doesn't become smaller if etcd is restored with --bump-revision. restoreLook implements manager.Runnable.
type restoreLook struct {
	live client.Reader
	// seen is the highest resourceVersion that a watch has brought.
	seen     func() string
	interval time.Duration
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. A standby restarts, too, because what it remembers is as wrong.
func (restoreLook) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns an error when the cluster's revision has become smaller. It ignores a check that gets no
// answer, or an answer that can't be compared.
func (r restoreLook) Start(ctx context.Context) error {
	last := ""
	err := wait.PollUntilContextCancel(ctx, r.interval, true, func(ctx context.Context) (bool, error) {
		if seen := r.seen(); last == "" || forest.IsNewer(seen, last) {
			last = seen
		}
		now, err := r.readRevision(ctx)
		switch {
		case err != nil:
			log.FromContext(ctx).V(1).Info("could not ask for the cluster's revision", "reason", err.Error())
		case forest.IsNewer(last, now):
			return false, fmt.Errorf("the cluster went from resourceVersion %s back to %s, as when etcd is restored from a snapshot; this "+
				"process ends, because its caches are newer than the cluster's state; the kubelet starts it again; outside of a "+
				"Pod, start it yourself", last, now)
		default:
			last = now
		}
		return false, nil
	})
	if wait.Interrupted(err) { // the process ends
		return nil
	}
	return err
}

// readRevision returns the resourceVersion of a list that is as new as the API server's storage. This number never gets smaller unless etcd
// is restored.
func (r restoreLook) readRevision(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.interval)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := r.live.List(ctx, list, client.Limit(1))
	return list.ResourceVersion, err
}
