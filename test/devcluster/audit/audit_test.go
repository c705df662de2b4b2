package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

const log = `{"stage":"ResponseStarted","verb":"watch","user":{"username":"op"},"objectRef":{"resource":"secrets"}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"op"},"userAgent":"manager/v1 (linux)",` +
	`"objectRef":{"resource":"secrets","namespace":"pay-web","name":"db"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"update","user":{"username":"op"},` +
	`"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"op"},"objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"op"},` +
	`"objectRef":{"resource":"events","apiGroup":"events.k8s.io"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"op"},` +
	`"objectRef":{"resource":"subjectaccessreviews","apiGroup":"authorization.k8s.io"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"op"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"delete","user":{"username":"bob"},"impersonatedUser":{"username":"alice"},` +
	`"objectRef":{"resource":"namespaces","name":"x"},"responseStatus":{"code":403}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"op"},"userAgent":"manager/v1",` +
	`"objectRef":{"resource":"lnamespaces","subresource":"status","apiGroup":"tenancy.warren.dev","name":"payments"},` +
	`"responseStatus":{"code":409}}
`

func lines(requests []audit.Request) []string {
	var text []string
	for _, r := range requests {
		text = append(text, r.String())
	}
	return text
}

func TestWritesAreCountedWhateverTheAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, next, err := audit.Read(path, audit.Position{})
	if err != nil || next.Bytes != int64(len(log)) {
		t.Fatalf("read to %d of %d, %v", next.Bytes, len(log), err)
	}
	want := []string{
		"create secrets pay-web/db 201 by op (manager/v1)",
		"patch lnamespaces/status payments 409 by op (manager/v1)",
	}
	if diff := cmp.Diff(want, lines(audit.Writes(requests, "op"))); diff != "" {
		t.Error(diff)
	}
	others := audit.Writes(requests, "bob")
	if len(others) != 1 || others[0].As != "alice" || others[0].Code != 403 {
		t.Errorf("bob's writes: %v", others)
	}
}

func TestHalfALineIsLeftForTheNextTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	half := strings.LastIndex(log, "lnamespaces")
	if err := os.WriteFile(path, []byte(log[:half]), 0o600); err != nil {
		t.Fatal(err)
	}
	first, next, err := audit.Read(path, audit.Position{})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := audit.End(path); err != nil || end != next {
		t.Errorf("the log ends at %d, %v, and was read to %d", end.Bytes, err, next.Bytes)
	}
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _, err := audit.Read(path, next)
	if err != nil || len(second) != 1 || second[0].Resource != "lnamespaces" {
		t.Errorf("after %d requests came %v, %v", len(first), second, err)
	}
}

func TestBrokenLogIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if _, _, err := audit.Read(path, audit.Position{}); err == nil {
		t.Error("a missing log was read")
	}
	if err := os.WriteFile(path, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := audit.Read(path, audit.Position{}); err == nil {
		t.Error("a broken line was read")
	}
}

func TestRequestsThatArrivedBeforeAreLeftOut(t *testing.T) {
	const log = `{"stage":"ResponseComplete","verb":"watch","requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"stage":"ResponseComplete","verb":"update","requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}
`
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, next, err := audit.Read(path, audit.Position{Since: time.Date(2026, 1, 1, 0, 0, 3, 0, time.UTC)})
	if err != nil || next.Bytes != int64(len(log)) || next.Since.IsZero() {
		t.Fatalf("read to %v, %v", next, err)
	}
	if len(requests) != 2 || requests[0].Verb != "watch" || requests[1].Verb != "create" {
		t.Errorf("read %v", requests)
	}
}
