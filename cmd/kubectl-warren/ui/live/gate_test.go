package live

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// server answers each request with status, or with an error while status is 0.
type server struct {
	mu     sync.Mutex
	status int
	asked  int
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: s.status, Body: http.NoBody}, nil
}

func (s *server) set(status int) (asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, asked, s.asked = status, s.asked, 0
	return asked
}

// follow sends requests as a reflector does: after a failure it tries again, after a pause that doubles each time.
func follow(client http.RoundTripper, answered func()) {
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		r, _ := http.NewRequest(http.MethodGet, "http://server/", nil)
		answer, err := client.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			answered()
			return
		}
		time.Sleep(pause)
	}
}

// TestOutage is the server's part of case WEB-U11.
func TestOutage(t *testing.T) {
	for name, status := range map[string]int{"away": 0, "credentials": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{status: status}
				client, err := rest.TransportFor(newGate(&rest.Config{Host: "http://server", Transport: s}))
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for range 4 {
					all.Add(1)
					go follow(client, all.Done)
				}
				time.Sleep(30 * time.Second)
				if asked := s.set(http.StatusOK); asked > 30 || asked < 10 {
					t.Errorf("%d requests in 30 s", asked)
				}
				back := time.Now()
				all.Wait()
				if late := time.Since(back); status == 0 && late > 5*time.Second {
					t.Errorf("caught up after %s", late)
				}
			})
		})
	}
}

func TestGateLetsPassAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: http.StatusForbidden} // 403 doesn't close the gate
		client, err := rest.TransportFor(newGate(&rest.Config{Host: "http://server", Transport: s}))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 100 {
			r, _ := http.NewRequest(http.MethodGet, "http://server/", nil)
			answer, err := client.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("100 requests took %s", took)
		}
	})
}
