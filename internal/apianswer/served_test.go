package apianswer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// reader gives the same answer to every read.
type reader struct {
	client.Reader
	deleting bool
	err      error
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if r.deleting {
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	}
	return r.err
}

func (r reader) List(context.Context, client.ObjectList, ...client.ListOption) error { return r.err }

func TestServed(t *testing.T) {
	noAnswer := errors.New("connection refused")
	for name, tc := range map[string]struct {
		live reader
		want bool
		err  error
	}{
		"There":    {reader{}, true, nil},
		"Deleting": {reader{deleting: true}, false, nil},
		"Absent":   {reader{err: apierrors.NewNotFound(secrets, "s")}, false, nil},
		"NoAnswer": {reader{err: noAnswer}, false, noAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := apianswer.Served(t.Context(), tc.live, "lnamespaces"); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
