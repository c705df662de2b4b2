package get

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/internal/pause"
)

// lookAgain is how often a watch asks whether there are new namespaces.
const lookAgain = 10 * time.Second

// follower watches a kind in many namespaces at once.
type follower struct {
	*answers
	find func(context.Context) ([]string, error) // the namespaces that there are now
	warn func(format string, values ...any)
	show func(runtime.Object) error

	group *errgroup.Group
	mu    sync.Mutex      // guards known
	known map[string]bool // namespaces that are watched
}

func (f *follower) isWatched(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[namespace]
}

func (f *follower) recordWatched(namespace string, watched bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[namespace] = watched
}

// watchNamespaces prints what changes in each namespace after it was listed, and all objects of later namespaces. It
// ends when ctx is done, or when a watch fails for another reason than a missing right.
func (f *follower) watchNamespaces(ctx context.Context) error {
	var following context.Context
	f.group, following = errgroup.WithContext(ctx)
	f.known = map[string]bool{}
	for _, one := range f.each {
		if !one.refused {
			f.startFollowing(following, one)
		}
	}
	f.group.Go(func() error { return f.followNew(following) })
	if err := f.group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // the user has ended the command
}

// startFollowing watches one namespace, at the same time as the others.
func (f *follower) startFollowing(ctx context.Context, one answer) {
	f.recordWatched(one.namespace, true)
	f.group.Go(func() error {
		err := f.followNamespace(ctx, one, f.show)
		if failure.Refused(err) { // the namespace, or the right to it, is gone, and may come back
			f.recordWatched(one.namespace, false)
			f.warn("Warning: you lack the right to list or to watch %s in %s: changes there are not shown until you have both\n",
				f.mapping.Resource.GroupResource(), one.namespace)
			return nil
		}
		return err
	})
}

// followNew looks for new namespaces again and again. An error of one search doesn't end it, because the next one may
// succeed.
func (f *follower) followNew(ctx context.Context) error {
	for {
		if err := pause.For(ctx, lookAgain); err != nil {
			return err
		}
		names, _ := f.find(ctx)
		for _, name := range names {
			if f.isWatched(name) {
				continue
			}
			one, err := f.listNamespace(ctx, name)
			if err != nil || one.refused {
				continue
			}
			if err := showPages(one, f.show); err != nil {
				return err
			}
			f.startFollowing(ctx, one)
		}
	}
}

// printInTurn returns a function that prints one object at a time, because the watches of all namespaces share the
// printer and out.
func (p *printer) printInTurn(out io.Writer) func(runtime.Object) error {
	var mu sync.Mutex
	return func(object runtime.Object) error {
		mu.Lock()
		defer mu.Unlock()
		if p.objects == nil {
			object = tableOf(object)
		}
		return p.printChange(object, out)
	}
}

// watchPause is the least time between two watches of a namespace, so that an API server that ends them at once is not
// asked in a loop.
const watchPause = time.Second

// followNamespace watches one namespace. The API server ends every watch after a while. Then the next watch continues
// at the same version, or after a new list if the API server no longer has the changes since that version.
func (r *requests) followNamespace(ctx context.Context, from answer, show func(runtime.Object) error) error {
	for {
		var err error
		from.version, err = r.watchOnce(ctx, from, show)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			if from, err = r.listNamespace(ctx, from.namespace); err != nil {
				return err
			}
			if err := showPages(from, show); err != nil {
				return err
			}
		default:
			return fmt.Errorf("watch %s in %s: %w", r.mapping.Resource.Resource, from.namespace, err)
		}
		if err := pause.For(ctx, watchPause); err != nil {
			return err
		}
	}
}

// watchOnce shows what one watch reports, and returns the last version that it reported.
func (r *requests) watchOnce(ctx context.Context, from answer,
	show func(runtime.Object) error) (version string, err error) {
	version = from.version
	stream, err := r.buildRequest(from.namespace,
		metav1.ListOptions{Watch: true, ResourceVersion: version, AllowWatchBookmarks: true}).Watch(ctx)
	if err != nil {
		return version, err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		object, err := readTable(event.Object)
		if err != nil {
			return version, err
		}
		if now := versionOf(object); now != "" {
			version = now
		}
		if event.Type == watch.Bookmark {
			continue
		}
		if err := show(object); err != nil {
			return version, err
		}
	}
	return version, nil
}

// versionOf returns the resourceVersion of an object, or of the object that a table shows.
func versionOf(object runtime.Object) string {
	if table, ok := object.(*metav1.Table); ok {
		for i := range table.Rows {
			if of, err := meta.Accessor(table.Rows[i].Object.Object); err == nil {
				return of.GetResourceVersion()
			}
		}
		return table.ResourceVersion
	}
	of, err := meta.CommonAccessor(object)
	if err != nil {
		return ""
	}
	return of.GetResourceVersion()
}

// showPages shows the pages of an answer: a table as a whole, a list object by object.
func showPages(of answer, show func(runtime.Object) error) error {
	for _, page := range of.pages {
		if _, ok := page.(*metav1.Table); ok {
			if err := show(page); err != nil {
				return err
			}
		} else if err := meta.EachListItem(page, show); err != nil {
			return err
		}
	}
	return nil
}
