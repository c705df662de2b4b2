package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/controlplane"
)

const operator = controlplane.Operator

// accept is what the operator asks for too: an answer without the content, which is the least work for both sides.
const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// floorTurn does what the operator does, knowing everything beforehand: 16 workers on one queue, bodies ready.
func floorTurn(ctx context.Context, b *bench, o *observer, number int) (t times, err error) {
	c, err := b.floorClient()
	if err != nil {
		return t, err
	}
	n := b.scale.sources * b.scale.children
	at := func(i int) (namespace, name string) {
		return child(i % b.scale.children), fmt.Sprintf("f-%d-%d", number, i/b.scale.children)
	}
	bodies := make([][]byte, n)
	prepare := func(fill string, over map[string]seen) error {
		for i := range bodies {
			namespace, name := at(i)
			if bodies[i], err = floorBody(namespace, name, fill, over[namespace+"/"+name]); err != nil {
				return err
			}
		}
		return nil
	}
	steps := []struct {
		goal    watch.EventType
		prepare func() error
		request func(i int) *rest.Request
	}{
		{watch.Added, func() error { return prepare("a", nil) }, func(i int) *rest.Request {
			namespace, _ := at(i)
			return c.Post().Namespace(namespace).Resource("secrets").Param("fieldManager", v1alpha1.OperatorName)
		}},
		{watch.Modified, func() error { return prepare("b", o.all()) }, func(i int) *rest.Request {
			namespace, name := at(i)
			return c.Put().Namespace(namespace).Resource("secrets").Name(name).Param("fieldManager", v1alpha1.OperatorName)
		}},
		{watch.Deleted, func() error { return prepareDeletes(bodies, o.all(), at) }, func(i int) *rest.Request {
			namespace, name := at(i)
			return c.Delete().Namespace(namespace).Resource("secrets").Name(name)
		}},
	}
	for phase, step := range steps {
		if err := step.prepare(); err != nil {
			return t, err
		}
		o.expect(step.goal, n)
		begin := time.Now()
		err := inParallel(ctx, n, func(ctx context.Context, i int) error {
			_, err := step.request(i).Body(bodies[i]).SetHeader("Content-Type", "application/json").SetHeader("Accept", accept).Do(ctx).Raw()
			return err
		})
		if err != nil {
			return t, err
		}
		end, err := o.wait(ctx)
		if err != nil {
			return t, err
		}
		t[phase] = end.Sub(begin)
	}
	return t, nil
}

// floorClient has the operator's identity, and no limit of its own.
func (b *bench) floorClient() (*rest.RESTClient, error) {
	cfg := b.Config(operator)
	cfg.QPS = -1
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(cfg)
}

// floorBody is a copy as the operator would write it.
func floorBody(namespace, name, fill string, over seen) ([]byte, error) {
	s := secret(name, fill)
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	s.Namespace, s.UID, s.ResourceVersion = namespace, types.UID(over.uid), over.resourceVersion
	s.Labels = map[string]string{v1alpha1.LabelInheritedFrom: root}
	s.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: "update:0123456789abcdef:" + strings.Repeat(fill, 32)}
	return json.Marshal(s)
}

func prepareDeletes(bodies [][]byte, all map[string]seen, at func(int) (string, string)) error {
	for i := range bodies {
		namespace, name := at(i)
		s := all[namespace+"/"+name]
		uid := types.UID(s.uid)
		body, err := json.Marshal(metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &s.resourceVersion},
		})
		if err != nil {
			return err
		}
		bodies[i] = body
	}
	return nil
}
