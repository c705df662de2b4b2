package leader

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestLateWritesEndTheProcess(t *testing.T) {
	long := time.Now().Add(-leaseDuration - time.Second)
	now := time.Now()
	for name, test := range map[string]struct {
		method  string
		renewed *time.Time
		ends    bool
	}{
		"FLT-F18 a write after the Lease has expired ends the process":       {http.MethodPut, &long, true},
		"FLT-F18 a read after the Lease has expired doesn't end the process": {http.MethodGet, &long, false},
		"FLT-F18 a write before the Lease expires doesn't end the process":   {http.MethodPatch, &now, false},
		"FLT-F18 a write without leader election doesn't end the process":    {http.MethodPost, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			ended := false
			lock := &Lock{endProcess: func(string) { ended = true }}
			lock.renewed.Store(test.renewed)
			answered := roundTripper(func(*http.Request) (*http.Response, error) { return httptest.NewRecorder().Result(), nil })
			answer, err := lock.endLateWrites(answered).RoundTrip(httptest.NewRequest(test.method, "/api/v1/namespaces", nil))
			if err != nil || answer.Body.Close() != nil || ended != test.ends {
				t.Errorf("%v, ended: %t, want %t", err, ended, test.ends)
			}
		})
	}
}
