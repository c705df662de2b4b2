package webhooks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/budget"
)

func TestReviewsThatWaitForRoom(t *testing.T) {
	t.Run("QUOTA-115 while 20 creations of ConfigMaps of 2 MiB wait for room, the review of another namespace is read", func(t *testing.T) {
		const large = 20
		waiting, done := make(chan struct{}, large+1), make(chan struct{})
		defer close(done)
		handler := newLimitedIntake().limitBodySize(roomHandler{func(_ context.Context, namespace string, _ budget.Amounts) {
			waiting <- struct{}{}
			if namespace == "full" {
				<-done
			}
		}})
		send := func(namespace, data string) *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathRoom, strings.NewReader(
				`{"request":{"uid":"7","namespace":"`+namespace+`","resource":{"resource":"configmaps"},"object":{"data":{"a":"`+data+`"}}}}`)))
			return answer
		}
		for range large {
			go send("full", strings.Repeat("x", 2<<20))
			select {
			case <-waiting:
			case <-time.After(20 * time.Second):
				t.Fatal("a review is not read")
			}
		}
		if answer := send("other", ""); answer.Code != http.StatusOK || len(waiting) != 1 ||
			!strings.Contains(answer.Body.String(), `"uid":"7","allowed":true`) {
			t.Errorf("answer %d: %s", answer.Code, answer.Body)
		}
	})
}
