package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// makeCopies makes sources × children copies, and waits until all is settled.
func (b *bench) makeCopies(ctx context.Context) error {
	if err := b.startOperator(ctx); err != nil {
		return err
	}
	if err := b.plantTree(ctx, b.scale.children); err != nil {
		return err
	}
	o, err := b.startObserver(ctx)
	if err != nil {
		return err
	}
	defer o.stop()
	o.expect(watch.Added, b.scale.sources*b.scale.children)
	for i := range b.scale.sources {
		if err := b.Admin().Create(ctx, b.scale.plantSource(i, fmt.Sprintf("s-%d", i))); err != nil {
			return err
		}
	}
	if _, err := o.wait(ctx); err != nil {
		return err
	}
	return b.waitForIdle(ctx)
}

// measureRestart measures B5: what is written when the operator starts and nothing has changed.
func measureRestart(ctx context.Context, b *bench) ([]result, error) {
	roles := 50
	switch {
	case !b.scale.measures(rbacv1.GroupName, "roles"):
		b.writeConfig(b.scale.configuration("{group: rbac.authorization.k8s.io, kind: Role, mode: All}"))
	case b.scale.mode != modeAll:
		roles = 0 // Roles are measured in mode OptIn, in which these would need the label to be sources
	}
	for i := range roles {
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "bench-roles", Name: fmt.Sprintf("r-%02d", i)},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
		}
		if i == 0 {
			if err := b.Admin().Create(ctx, build.Root(role.Namespace)); err != nil {
				return nil, err
			}
			if err := b.Admin().Create(ctx, build.Child("bench-roles-child", role.Namespace)); err != nil {
				return nil, err
			}
		}
		if err := b.Admin().Create(ctx, role); err != nil {
			return nil, err
		}
	}
	if err := b.makeCopies(ctx); err != nil {
		return nil, err
	}
	requests, ready, err := b.requestsOfRestart(ctx)
	if err != nil {
		return nil, err
	}
	writes, reads := audit.Writes(requests, controlplane.Operator), newRestartReads(requests, ready)
	r := result{id: "B5", counted: true, passed: len(writes) == 0,
		text: fmt.Sprintf("restart %d copies, writes until %s after ready: %d budget 0, reads %s",
			b.scale.sources*b.scale.children+roles, b.scale.idle, len(writes), reads)}
	for i, w := range writes {
		if i < 5 {
			r.text += "\n   " + w.String()
		}
	}
	return []result{r}, nil
}

// requestsOfRestart restarts the operator and returns what was asked until it had been idle for a while, and when it was ready.
func (b *bench) requestsOfRestart(ctx context.Context) (requests []audit.Request, ready time.Time, err error) {
	mark, err := b.Mark(ctx)
	if err != nil {
		return nil, ready, err
	}
	if err := b.Operator.Restart(ctx); err != nil {
		return nil, ready, err
	}
	ready = time.Now()
	select {
	case <-time.After(b.scale.idle):
	case <-ctx.Done():
		return nil, ready, ctx.Err()
	}
	requests, err = b.Requests(ctx, mark)
	return requests, ready, err
}

// restartReads counts the lists, watches and single reads of the operator, by resource.
type restartReads map[string]int

// lateAfter is how long after readiness a read counts as late. The operator should know everything by then: it would send a later read at
// rest, too.
const lateAfter = 5 * time.Second

func newRestartReads(requests []audit.Request, ready time.Time) restartReads {
	reads := restartReads{}
	for _, r := range requests {
		if r.User != controlplane.Operator || r.Resource == "" || r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			continue
		}
		key := r.Verb + " " + r.Resource
		if r.At.Sub(ready) > lateAfter {
			key = "late " + key
		}
		reads[key]++
	}
	return reads
}

// String lists the counts, such as `list secrets 7`.
func (r restartReads) String() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(r)) {
		all = append(all, fmt.Sprintf("%s %d", key, r[key]))
	}
	return strings.Join(all, ", ")
}
