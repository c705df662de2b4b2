package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// operatorUser is the identity of both the operator and the floor.
const operatorUser = controlplane.Operator

// accept asks for an answer with the metadata alone, as the operator does, too: this is the least work for both sides.
const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// acceptJSON asks for the same of custom resources, as JSON.
const acceptJSON = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// floorBatch does the operator's work as a program that knows everything beforehand: 16 workers on one queue send bodies that are ready.
type floorBatch struct {
	bench    *bench
	observer *observer
	name     string
	clients  map[schema.GroupVersion]*rest.RESTClient
	bodies   [][]byte
}

func newFloorBatch(b *bench, o *observer, name string) (*floorBatch, error) {
	f := &floorBatch{b, o, name, map[schema.GroupVersion]*rest.RESTClient{}, make([][]byte, b.scale.sources*b.scale.children)}
	for _, kind := range b.scale.kinds {
		c, err := b.floorClientOf(operatorUser, kind.GroupVersion())
		if err != nil {
			return nil, err
		}
		f.clients[kind.GroupVersion()] = c
	}
	return f, nil
}

// at returns the place of copy i.
func (f *floorBatch) at(i int) (namespace, name string) {
	return childName(i % f.bench.scale.children), fmt.Sprintf("%s-%d", f.name, i/f.bench.scale.children)
}

// kindAt returns the kind of copy i.
func (f *floorBatch) kindAt(i int) benchKind { return f.bench.scale.kindOf(i / f.bench.scale.children) }

func (f *floorBatch) prepare(_ context.Context, phase int) error {
	known := f.observer.all()
	for i := range f.bodies {
		namespace, name := f.at(i)
		over := known[namespace+"/"+name]
		var err error
		switch phase {
		case creates:
			f.bodies[i], err = floorBody(f.kindAt(i), namespace, name, "a", seen{})
		case updates:
			f.bodies[i], err = floorBody(f.kindAt(i), namespace, name, "b", over)
		case deletes:
			f.bodies[i], err = floorDelete(over)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *floorBatch) run(ctx context.Context, phase int) error {
	return inParallel(ctx, len(f.bodies), func(ctx context.Context, i int) error {
		namespace, name := f.at(i)
		var r *rest.Request
		kind := f.kindAt(i)
		c := f.clients[kind.GroupVersion()]
		switch phase {
		case creates:
			r = c.Post().Param("fieldManager", v1alpha1.OperatorName)
		case updates:
			r = c.Put().Name(name).Param("fieldManager", v1alpha1.OperatorName)
		default:
			r = c.Delete().Name(name)
		}
		_, err := r.Namespace(namespace).Resource(kind.Resource).Body(f.bodies[i]).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", accept).Do(ctx).Raw()
		return err
	})
}

// floorClient returns a client for the core group that does not limit its own requests.
func (b *bench) floorClient(user string) (*rest.RESTClient, error) {
	return b.floorClientOf(user, corev1.SchemeGroupVersion)
}

func (b *bench) floorClientOf(user string, version schema.GroupVersion) (*rest.RESTClient, error) {
	cfg := b.Config(user)
	cfg.QPS = -1
	cfg.APIPath, cfg.GroupVersion = "/apis", &version
	if version.Group == "" {
		cfg.APIPath = "/api"
	}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(cfg)
}

// floorBody is a copy as the operator would write it.
func floorBody(kind benchKind, namespace, name, fill string, over seen) ([]byte, error) {
	object := kind.make(name, fill)
	object.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.kind))
	object.SetNamespace(namespace)
	object.SetUID(types.UID(over.uid))
	object.SetResourceVersion(over.resourceVersion)
	object.SetLabels(map[string]string{v1alpha1.LabelInheritedFrom: root})
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationSourceHash: "update:0123456789abcdef:" + strings.Repeat(fill, 32)})
	return json.Marshal(object)
}

// floorDelete are the options with which the operator would delete a copy.
func floorDelete(over seen) ([]byte, error) {
	uid := types.UID(over.uid)
	return json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &over.resourceVersion},
	})
}
