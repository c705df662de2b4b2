package api

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Refusal is an answer of the API server that reports an error.
type Refusal struct{ status metav1.Status }

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s", r.status.Code, r.status.Message) }

// Code is the HTTP status.
func (r *Refusal) Code() int { return int(r.status.Code) }

func (r *Refusal) response() Response {
	r.status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return Response{Code: int(r.status.Code), Body: mustEncode(r.status)}
}

func refuse(err *apierrors.StatusError) *Refusal { return &Refusal{err.ErrStatus} }

func notFound(of schema.GroupResource, name string) *Refusal {
	return refuse(apierrors.NewNotFound(of, name))
}

func unknownResource(group, resource string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: resource}
}

func forbidden(of schema.GroupResource, name, why string) *Refusal {
	return refuse(apierrors.NewForbidden(of, name, fmt.Errorf("%s", why)))
}

// Forbid returns the refusal of an admission plugin.
func Forbid(k *Kind, name, why string) *Refusal { return forbidden(k.GroupResource(), name, why) }

func conflict(of schema.GroupResource, name, why string) *Refusal {
	return refuse(apierrors.NewConflict(of, name, fmt.Errorf("%s", why)))
}

func invalid(k *Kind, name string, errs field.ErrorList) *Refusal {
	return refuse(apierrors.NewInvalid(k.GroupKind(), name, errs))
}

func exists(of schema.GroupResource, name string) *Refusal {
	return refuse(apierrors.NewAlreadyExists(of, name))
}

func expired() *Refusal { return refuse(apierrors.NewResourceExpired("too old resource version")) }

// Trouble returns the answer of an API server that is overloaded or has lost etcd.
func Trouble(code int) Response {
	switch code {
	case http.StatusTooManyRequests:
		return refuse(apierrors.NewTooManyRequests("the server has received too many requests", 1)).response()
	case http.StatusServiceUnavailable:
		return refuse(apierrors.NewServiceUnavailable("the server is currently unable to handle the request")).response()
	}
	return refuse(apierrors.NewInternalError(fmt.Errorf("etcdserver: request timed out"))).response()
}
