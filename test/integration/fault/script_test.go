package fault_test

import (
	"bytes"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/warren-tenancy/warren/test/gate"
)

// decide returns the fault that a request meets, and whether it meets one.
type decide func(gate.Request) (fault gate.Fault, meets bool)

// scripts decide about the requests of each scene. A request belongs to the scene whose key is in its path or its body.
type scripts struct {
	mu    sync.Mutex
	byKey map[string]decide
}

// set makes the function of decide about the requests of a scene; nil lets them through.
func (s *scripts) set(key string, of decide) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[string]decide{}
	}
	if s.byKey[key] = of; of == nil {
		delete(s.byKey, key)
	}
}

// decide is the gate's script: it returns the fault of a scene whose own script has one for the request.
func (s *scripts) decide(r gate.Request) gate.Fault {
	s.mu.Lock()
	all := maps.Clone(s.byKey)
	s.mu.Unlock()
	for key, of := range all {
		if key != everything && !isOf(key, r) {
			continue
		}
		if fault, meets := of(r); meets {
			return fault
		}
	}
	return gate.Fault{}
}

// everything is the key of a script that decides about the requests of all scenes, and those of none.
const everything = "*"

// Script makes the function of decide about every request; nil ends that.
func (s *stage) Script(of func(gate.Request) gate.Fault) {
	if of == nil {
		s.scripts.set(everything, nil)
		return
	}
	s.scripts.set(everything, func(r gate.Request) (gate.Fault, bool) { return of(r), true })
}

// isOf reports whether a request concerns a scene.
func isOf(key string, r gate.Request) bool {
	return strings.Contains(r.URL.Path, key+"-") || bytes.Contains(r.Body, []byte(key+"-"))
}

// isWrite reports whether the specification counts a request as a write.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.HasSuffix(r.URL.Path, "/events") &&
		!strings.Contains(r.URL.Path, "/events/") && !strings.HasSuffix(r.URL.Path, "reviews")
}
