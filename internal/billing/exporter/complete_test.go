package exporter

import (
	"strings"
	"testing"
	"time"
)

func TestEventOfAnExporterThatHasReadNothing(t *testing.T) {
	if got := describeComplete(time.Time{}); strings.Contains(got, "0001") || !strings.Contains(got, "billing status") {
		t.Errorf("%q", got)
	}
	if got := describeComplete(time.Unix(0, 0)); got != "The ledger is complete until 1970-01-01T00:00:00Z" {
		t.Errorf("%q", got)
	}
}
