package access

import (
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/grants"
)

// neverRead is the function readTo of a recent without informers: it doesn't know how far any watch has read.
func neverRead(string) string { return "" }

// FLT-F07: if a plan after an outage didn't know the operator's own writes, it would find no binding to revoke, and grant first.
func TestOwnWritesAreKnownUntilTheWatchHasReadThem(t *testing.T) {
	written := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren:sudo:payments", ResourceVersion: "20"}}
	key := grants.KeyOf(written)
	for name, c := range map[string]struct {
		readTo string
		after  time.Duration
		known  bool
	}{
		"at once": {readTo: "10", after: time.Second, known: true},
		"an hour later, and the watch is still behind":   {readTo: "10", after: time.Hour, known: true},
		"the watch has just read on":                     {readTo: "30", after: time.Second, known: true},
		"the watch has read on, and the object was lost": {readTo: "30", after: time.Minute},
		"nobody knows how far the watch has read":        {readTo: "", after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecent(10*time.Second, func(string) string { return c.readTo })
				r.recordWritten(written)
				time.Sleep(c.after)
				if got := r.latestOf(key, nil); (got != nil) != c.known {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// A deletion is known at once. But a binding that a finalizer keeps still grants, also if the operator did not know the finalizer.
func TestOwnDeletionsAreKnownUnlessAFinalizerKeepsTheObject(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren:sole:web:mia", UID: "1", ResourceVersion: "20"}}
	kept := binding.DeepCopy()
	kept.ResourceVersion, kept.DeletionTimestamp, kept.Finalizers = "22", new(metav1.Now()), []string{"example.com/keep"}
	another := binding.DeepCopy()
	another.ResourceVersion, another.UID = "23", "2"
	for name, c := range map[string]struct {
		cached *rbacv1.ClusterRoleBinding
		known  bool
	}{
		"ACC-R26 a binding that the operator has deleted is known to be gone while the cache is behind": {binding, false},
		"ACC-R26 a binding that a finalizer keeps after its deletion still counts":                      {kept, true},
		"ACC-R26 another binding that has the name by now counts":                                       {another, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecent(time.Minute, neverRead)
			r.recordDeleted(binding)
			if got := r.latestOf(grants.KeyOf(binding), c.cached); (got != nil) != c.known {
				t.Errorf("got %v", got)
			}
		})
	}
}
