package access

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/test/build"
)

// A suspended account on two lists is reported once.
func TestListFindings(t *testing.T) {
	const why = "ServiceAccount ci/deployer is suspended"
	seen := &facts{own: true}
	seen.input.Refused = []grants.Refusal{{List: grants.ListUsers, Why: why}, {List: grants.ListSudoers, Why: why}, {List: grants.ListUsers, Why: "another"}}
	found := listFindings(build.Tenant("shop").Object(), seen, &outcome{})
	if len(found) != 2 || found[0].message != why || found[1].message != "another" {
		t.Errorf("found %+v", found)
	}
}
