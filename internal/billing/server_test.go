package billing_test

import (
	"sync"
	"testing"

	"github.com/warren-tenancy/warren/test/postgres"
)

// server is one PostgreSQL for all tests of the package. The first test that needs it starts it.
var server sharedServer

type sharedServer struct {
	once    sync.Once
	running *postgres.Server
	err     error
}

// start returns a data source name. If no PostgreSQL is installed, the test is skipped; in CI it fails.
func (s *sharedServer) start(t testing.TB) (dsn string) {
	t.Helper()
	postgres.Require(t)
	s.once.Do(func() { s.running, s.err = postgres.Start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.running.DSN
}

func (s *sharedServer) stop() {
	if s.running != nil {
		s.running.Stop()
	}
}
