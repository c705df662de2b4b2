package distribution_test

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// plant makes a stranger in any of the namespaces, if no object with that name exists there.
func (s *sequence) plant(ctx context.Context) error {
	namespace := s.anyNamespace()
	secret := build.Secret(namespace, s.id, "mine")
	one := &stranger{namespace: namespace, guarded: true}
	kind := s.random.IntN(6)
	switch yes := true; kind {
	case 0:
		secret.Immutable = &yes
	case 1:
		secret.Type = "example.com/other"
	case 2:
		n := &corev1.Namespace{}
		if err := s.Admin().Get(ctx, client.ObjectKey{Name: namespace}, n); err != nil {
			return client.IgnoreNotFound(err)
		}
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace, UID: n.UID, Controller: &yes}}
	case 3: // made to look like a copy of another place
		secret.Labels = map[string]string{v1alpha1.LabelDistributedBy: s.id}
		secret.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: "update:0123456789abcdef:" + strings.Repeat("ab", 16),
			v1alpha1.AnnotationAdopted: v1alpha1.True}
	case 4: // identical to what is distributed
		secret.Data, one.guarded = map[string][]byte{"v": []byte(strconv.Itoa(s.value))}, false
	default:
		one.guarded = false
	}
	switch err := s.Admin().Create(ctx, secret); {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil // an object exists there, or the namespace is being deleted
	case err != nil:
		return err
	}
	s.note("a stranger of kind %d comes to %s", kind, namespace)
	one.uid, one.resourceVersion, one.exposed = secret.UID, secret.ResourceVersion, s.takesOver
	s.strangers[one.uid] = one
	return nil
}

// touch edits or deletes the Secret in any of the namespaces, whether it is a copy or a stranger.
func (s *sequence) touch(ctx context.Context) error {
	namespace := s.anyNamespace()
	secret, err := s.get(ctx, namespace)
	if err != nil || secret == nil {
		return err
	}
	if s.random.IntN(2) == 0 {
		s.note("what stands in %s is deleted", namespace)
		delete(s.strangers, secret.UID)
		return ignoreRace(s.Admin().Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
	}
	if secret.Immutable != nil {
		return nil
	}
	secret.Data = map[string][]byte{"v": []byte("edited")}
	if err := s.Admin().Update(ctx, secret); err != nil {
		return ignoreRace(err)
	}
	s.note("what stands in %s is edited", namespace)
	if one := s.strangers[secret.UID]; one != nil {
		one.resourceVersion = secret.ResourceVersion
	}
	return nil
}

func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// move takes a namespace out of the targets, or into them.
func (s *sequence) move(ctx context.Context) error {
	namespace, value := s.anyNamespace(), draw(s.random, s.id, "none")
	s.note("%s is labelled %s", namespace, value)
	return s.label(ctx, namespace, value)
}

func (s *sequence) label(ctx context.Context, namespace, value string) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"dist":"`+value+`"}}}`))
	return s.Admin().Patch(ctx, build.Namespace(namespace), patch)
}

// raze deletes a namespace with all that is in it, and makes it again.
func (s *sequence) raze(ctx context.Context) error {
	if s.random.IntN(6) != 0 {
		return nil
	}
	namespace := s.anyNamespace()
	s.note("%s goes and comes again", namespace)
	for uid, one := range s.strangers {
		if one.namespace == namespace {
			delete(s.strangers, uid)
		}
	}
	if err := s.Admin().Delete(ctx, build.Namespace(namespace)); err != nil {
		return err
	}
	return s.await(ctx, "the namespace is made again", func(ctx context.Context) (bool, error) {
		err := s.Admin().Create(ctx, build.Namespace(namespace, "dist", s.id))
		return err == nil, client.IgnoreAlreadyExists(err)
	})
}
