package distribution

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// statuses writes the results of reviews into the statuses of ResourceDistributions, and sends the Events.
type statuses struct {
	timing Timing
	queue  *queue
	writer *copying.Writer
	events *events
}

// report writes the status if it has changed: at once if it is urgent, else not more often than Timing allows. If d is not the
// present spec any more, nothing is written, because another review is queued. It returns false if a changed status was not
// written.
func (s *statuses) report(ctx context.Context, r *run, d *distribute.Distribution, found distribute.Review, urgent bool) bool {
	now, ok := r.planReport(d, found, urgent, &s.timing)
	switch {
	case !ok:
		return false
	case !now.isNews:
		s.events.tellDeeds(d, r.deeds.takeAll())
		return true
	case now.wait > 0:
		s.queue.AddAfter(key{distribution: d.Name}, now.wait)
		return false
	}
	done := r.deeds.takeAll()
	if err := s.write(ctx, r, d, now); err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			ctrl.Log.WithName("distribution").Error(err, "writing a status; it is tried again", "distribution", d.Name)
		}
		r.deeds.putBack(done)
		s.queue.AddAfter(key{distribution: d.Name}, s.timing.Last)
		return false
	}
	s.events.tellDeeds(d, done)
	if s.events.tellChange(d, &now.was, &now.now) {
		rolloutSeconds.Observe(time.Since(r.began()).Seconds())
	}
	s.events.tellObstacles(d, &now.was, found.Results)
	return true
}

// write sends the status only; the API server keeps the rest of the object.
func (s *statuses) write(ctx context.Context, r *run, d *distribute.Distribution, now report) error {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Write)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": distribute.Kind,
		"metadata": map[string]any{"name": d.Name, "uid": d.UID, "resourceVersion": now.resourceVersion},
		"status":   now.now,
	})
	if err != nil {
		return err
	}
	meta, err := s.writer.UpdateStatus(ctx, v1alpha1.GroupVersion.WithResource("resourcedistributions"), d.Name, body)
	if err != nil {
		return err
	}
	r.noteStatus(now, meta.ResourceVersion)
	return nil
}
