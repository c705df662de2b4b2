package apianswer_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

func TestListCached(t *testing.T) {
	if !apianswer.ListCached(reader{}, &corev1.SecretList{}) {
		t.Error("a filled cache answers")
	}
	if apianswer.ListCached(reader{err: context.DeadlineExceeded}, &corev1.SecretList{}) {
		t.Error("a cache that is not filled in time has no answer")
	}
}
