package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history answers each list with the next of its revisions; "" means no answer. When none is left, it calls over.
type history struct {
	client.Reader
	revisions []string
	over      context.CancelFunc
}

func (h *history) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if len(h.revisions) == 0 {
		h.over()
		return errors.New("over")
	}
	now := h.revisions[0]
	h.revisions = h.revisions[1:]
	if now == "" {
		return errors.New("no answer")
	}
	list.(*metav1.PartialObjectMetadataList).ResourceVersion = now
	return nil
}

func TestRestoreLook(t *testing.T) {
	for name, c := range map[string]struct {
		revisions []string
		seen      string
		want      string
	}{
		"Forward": {[]string{"9", "9", "10", "100"}, "8", ""},
		"FLT-F40 reports a resourceVersion that got smaller": {[]string{"9", "100", "99"}, "", "from resourceVersion 100 back to 99"},
		"FLT-F40 reports one that got smaller in an outage":  {[]string{"100", "", "", "20"}, "", "from resourceVersion 100 back to 20"},
		"FLT-F40 reports one smaller than that of a watch":   {[]string{"20"}, "100", "from resourceVersion 100 back to 20"},
		"Incomparable": {[]string{"100", "x", "99"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := restoreLook{&history{revisions: c.revisions, over: cancel}, func() string { return c.seen }, time.Millisecond}.Start(ctx)
			if got := errorText(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
