package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// label is the key of a label on a Deployment and its Pods. Its value is the name of their Memcached.
const label = "cache.example.com/memcached"

type reconciler struct {
	client.Client // reads Memcacheds, and sends all writes
	set           watchset.Controller
}

// ownersIn enqueues the Memcached that a Deployment or Pod belongs to.
func (r *reconciler) ownersIn() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name := object.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	})
}

// Reconcile deploys a Memcached as far as the operator's rights go. A read that is forbidden needs no retry by time: States enqueues the
// Memcached again when a right to list or watch comes or goes. No event shows that a right to write has come, so the error of a forbidden
// write is returned, and causes a retry.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var m Memcached
	if err := r.Get(ctx, request.NamespacedName, &m); err != nil {
		if apierrors.IsNotFound(err) {
			r.set.Release(request.NamespacedName) // the Memcached is gone and needs no informers any more
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	session := r.set.Session(request.NamespacedName)
	c := session.Client(r.Client, watchset.GetByNamespace())
	before := m.DeepCopy()
	err := r.deploy(ctx, c, &m)
	session.Commit()
	reason, message := outcome(&m, err)
	if reason == "" {
		return reconcile.Result{}, err // errors of other kinds are retried
	}
	var unseen *watchset.ForbiddenError
	var refusedWrite error
	if apierrors.IsForbidden(err) && !errors.As(err, &unseen) {
		refusedWrite = err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: m.Generation}
	m.Status.State = MemcachedState{Status: "Failed", Message: message}
	if err == nil {
		ready.Status, m.Status.State.Status = metav1.ConditionTrue, "Succeeded"
	}
	meta.SetStatusCondition(&m.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return reconcile.Result{}, refusedWrite
	}
	return reconcile.Result{}, errors.Join(refusedWrite, r.Status().Patch(ctx, &m, client.MergeFrom(before)))
}

// outcome returns reason and message of a Memcached's condition; an empty reason for an error that the condition doesn't report.
func outcome(m *Memcached, err error) (reason, message string) {
	switch {
	case err == nil:
		return "Deployed", fmt.Sprintf("Deployment %s successfully created", m.Name)
	case apierrors.IsForbidden(err):
		return "Forbidden", "Not permitted: " + err.Error()
	case meta.IsNoMatchError(err):
		return "NotServed", err.Error()
	case errors.Is(err, watchset.ErrNotSynced):
		return "Waiting", "waiting for the first list of Deployments and Pods"
	}
	return "", ""
}

// deploy creates or updates the Deployment, and reads its Pods.
func (r *reconciler) deploy(ctx context.Context, c client.Client, m *Memcached) error {
	want, err := r.deployment(m)
	if err != nil {
		return err
	}
	var found appsv1.Deployment
	err = c.Get(ctx, client.ObjectKeyFromObject(want), &found)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, want)
	case err == nil && *found.Spec.Replicas != m.Spec.Size:
		found.Spec.Replicas = &m.Spec.Size
		err = c.Update(ctx, &found)
	}
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels{label: m.Name}); err != nil {
		return err
	}
	m.Status.Nodes = nil
	for i := range pods.Items {
		m.Status.Nodes = append(m.Status.Nodes, pods.Items[i].Name)
	}
	slices.Sort(m.Status.Nodes)
	return nil
}

func (r *reconciler) deployment(m *Memcached) (*appsv1.Deployment, error) {
	labels := map[string]string{label: m.Name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Size,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached:1.6-alpine"}}},
			},
		},
	}
	return d, ctrl.SetControllerReference(m, d, r.Scheme())
}
