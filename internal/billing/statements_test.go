package billing

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write test/googlesql/testdata/statements.sql")

// The check of GoogleSQL is a Go module of its own, so it reads the statements from a file.
func TestStatementsOfBigQuery(t *testing.T) {
	const file = "../../test/googlesql/testdata/statements.sql"
	texts, err := BigQuery("acme-finops", "finops").buildStatements("tenant_billing")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	all.WriteString("-- What the ledger sends to BigQuery. Written by `go test ./internal/billing -run TestStatementsOfBigQuery -update`.\n")
	for value, i := reflect.ValueOf(texts), 0; i < value.NumField(); i++ {
		if text := value.Field(i).String(); text != "" {
			fmt.Fprintf(&all, "\n-- %s\n%s;\n", value.Type().Field(i).Name, text)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if err != nil || string(committed) != all.String() {
		t.Errorf("%s is not what the ledger sends (error %v): run this test with -update", file, err)
	}
}
