//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// census has what no change of versions may take away: the namespaces with their UIDs, and the copies of Secrets in them.
type census struct {
	namespaces map[string]types.UID
	copies     map[client.ObjectKey]string // the UID and resourceVersion of each copy of a Secret
}

func (r *run) takeCensus(ctx context.Context) (census, error) {
	now := census{namespaces: map[string]types.UID{}, copies: map[client.ObjectKey]string{}}
	var namespaces corev1.NamespaceList
	var copied corev1.SecretList
	err := errors.Join(r.world.Admin().List(ctx, &namespaces),
		r.world.Admin().List(ctx, &copied, client.HasLabels{v1alpha1.LabelInheritedFrom}))
	for i := range namespaces.Items {
		if ns := &namespaces.Items[i]; ns.Name != operatorNamespace {
			now.namespaces[ns.Name] = ns.UID
		}
	}
	for i := range copied.Items {
		s := &copied.Items[i]
		now.copies[client.ObjectKeyFromObject(s)] = string(s.UID) + " " + s.ResourceVersion
	}
	return now, err
}

// checkNamespaces returns an error unless each namespace of before still exists with its UID.
func (r *run) checkNamespaces(ctx context.Context, before census) error {
	now, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	for name, uid := range before.namespaces {
		if now.namespaces[name] != uid {
			return fmt.Errorf("namespace %s had UID %s, and has %q now: no namespace may be lost", name, uid, now.namespaces[name])
		}
	}
	return nil
}

// checkUntouched returns an error unless each namespace and each copy of before still exists, and no such copy was written again.
func (r *run) checkUntouched(ctx context.Context, before census) error {
	if err := r.checkNamespaces(ctx, before); err != nil {
		return err
	}
	now, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	for key, version := range before.copies {
		if now.copies[key] != version {
			return fmt.Errorf("copy %s was %s, and is %q now: a change of versions must not write it", key, version, now.copies[key])
		}
	}
	return nil
}
