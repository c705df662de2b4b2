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
)

// watch prints what changes in each namespace since it was listed, until ctx is done or a watch fails.
func (a *answers) watch(ctx context.Context, out io.Writer, p *printer) error {
	var mu sync.Mutex // guards printer and out, which all namespaces share
	show := func(object runtime.Object) error {
		mu.Lock()
		defer mu.Unlock()
		if p.objects == nil {
			object = tableOf(object)
		}
		return p.printChange(object, out)
	}
	group, following := errgroup.WithContext(ctx)
	for _, one := range a.each {
		if !one.refused {
			group.Go(func() error { return a.follow(following, one, show) })
		}
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // whoever typed the command has seen enough
}

// watchPause is the least time between two watches of a namespace, so that an API server that ends them at once is not asked in a loop.
const watchPause = time.Second

// follow watches one namespace. The API server ends every watch after a while; then the next one goes on from there, or from a new list
// where the API server has forgotten what came since.
func (r *requests) follow(ctx context.Context, from answer, show func(runtime.Object) error) error {
	for {
		var err error
		from.version, err = r.watchOnce(ctx, from, show)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if err := sleep(ctx, watchPause); err != nil {
				return err
			}
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			if from, err = r.listNamespace(ctx, from.namespace); err != nil {
				return err
			}
			for _, page := range from.pages {
				if err := eachObject(page, show); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("watch %s in %s: %w", r.mapping.Resource.Resource, from.namespace, err)
		}
	}
}

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchOnce shows what one watch brings, and returns the version up to which it came.
func (r *requests) watchOnce(ctx context.Context, from answer, show func(runtime.Object) error) (version string, err error) {
	version = from.version
	stream, err := r.request(from.namespace, metav1.ListOptions{Watch: true, ResourceVersion: version, AllowWatchBookmarks: true}).Watch(ctx)
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

// versionOf is the version of an object, or of the object of which a table tells.
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

// eachObject shows a page: a table as it is, and of a list its objects.
func eachObject(page runtime.Object, show func(runtime.Object) error) error {
	if _, ok := page.(*metav1.Table); ok {
		return show(page)
	}
	return meta.EachListItem(page, show)
}
