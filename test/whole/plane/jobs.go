package plane

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// findJobTasks completes Jobs of no completions, and deletes those that have been complete for ttlSecondsAfterFinished.
func (p *Plane) findJobTasks() {
	for _, job := range p.server.Kind("batch", "jobs").All() {
		if job.GetDeletionTimestamp() != nil {
			continue
		}
		completed, isComplete := completionOf(job)
		if !isComplete {
			p.add("complete Job "+job.GetName(), func() *api.Refusal { return p.completeJob(job) })
			continue
		}
		seconds, expires, _ := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished")
		if !expires {
			continue
		}
		end := completed.Add(time.Duration(seconds) * time.Second)
		if p.server.Now().Before(end) {
			if p.wake.IsZero() || end.Before(p.wake) {
				p.wake = end
			}
			continue
		}
		p.add("delete finished Job "+job.GetName(), func() *api.Refusal {
			p.server.DeleteForeground(User, job)
			return nil
		})
	}
}

// Due returns when the controllers have something to do though nothing changes; zero if they never have.
func (p *Plane) Due() time.Time {
	if p.Away {
		return time.Time{}
	}
	return p.wake
}

// completionOf returns when a Job was complete, in whole seconds.
func completionOf(job *api.Record) (time.Time, bool) {
	text, found, _ := unstructured.NestedString(job.Object, "status", "completionTime")
	if !found {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(fmt.Sprintf("completionTime %q of Job %s: %v", text, job.GetName(), err))
	}
	return at, true
}

func (p *Plane) completeJob(job *api.Record) *api.Refusal {
	for _, key := range []string{"completions", "parallelism"} {
		if n, found, _ := unstructured.NestedInt64(job.Object, "spec", key); !found || n != 0 {
			panic("the model knows Jobs without pods alone, not " + job.GetName())
		}
	}
	u, now := job.DeepCopy(), p.server.Now().UTC().Format(time.RFC3339)
	u.Object["status"] = map[string]any{"startTime": now, "completionTime": now, "conditions": []any{map[string]any{
		"type": "Complete", "status": "True", "lastProbeTime": now, "lastTransitionTime": now}}}
	_, refusal := p.server.Update(User, job, "status", u)
	return refusal
}

// isForeground reports whether an object is deleted after what it owns, which the garbage collector then deletes.
func isForeground(r *api.Record) bool {
	return r.GetDeletionTimestamp() != nil && slices.Contains(r.GetFinalizers(), api.Foreground)
}

// releaseForeground lets go of an object that is deleted after what it owns: nothing in the model blocks that.
func (p *Plane) releaseForeground(r *api.Record) {
	if !isForeground(r) {
		return
	}
	p.add("release "+r.GetKind()+" "+r.GetName(), func() *api.Refusal {
		u := r.DeepCopy()
		u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == api.Foreground }))
		_, refusal := p.server.Update(User, r, "", u)
		return refusal
	})
}
