package ui_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

func testRequests(t *testing.T, c *cluster) {
	tenant := build.Tenant("asks").Users("asks-alice").Managers("asks-mia").Sudoers("asks-bob").Object()
	tenant.Spec.SudoRequests = &v1alpha1.SudoRequests{Eligible: build.Users("asks-alice")}
	c.newTenant(t, tenant)
	eventually(t, "a second in which a request is younger than its tenant", func() error {
		if time.Since(tenant.CreationTimestamp.Time) < 2*time.Second {
			return errors.New("it is too soon")
		}
		return nil
	})
	const reason = "INC-42 <b>restore</b> the ledger"
	request := &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "asks", Name: "restore"},
		Spec: v1alpha1.SudoRequestSpec{User: "asks-alice", Reason: reason, Duration: "30m", Decisions: []v1alpha1.SudoDecision{}}}
	eventually(t, "the request", func() error { return c.As("asks-alice").Create(t.Context(), request.DeepCopy()) })
	r := c.serve(t, "asks-mia")
	p := r.open("tenants/asks")
	row := func(state string) (cells []string) {
		eventually(t, state, func() error {
			p.Go(r.address("tenants/asks"))
			rows := p.Table("Sudo on request, open and granted")
			if len(rows) != 1 || !strings.HasPrefix(rows[0][1], state+": ") {
				return fmt.Errorf("%q", rows)
			}
			cells = rows[0]
			return nil
		})
		return cells
	}
	cells := row("Pending")
	equal(p, "the request", strings.Join(cells, "|"),
		"asks-alice|Pending: 1 more of 1 approvals needed, from User asks-mia||30m|"+reason+"|restore")
	p.CheckAxe()
	c.kubectl(t, "asks-mia", "sudo", "approve", "restore", "--tenant", "asks")
	cells = row("Granted")
	if end, err := time.Parse(time.RFC3339, cells[2]); err != nil || time.Until(end) < 29*time.Minute || time.Until(end) > 31*time.Minute {
		t.Errorf("the end is %q, %v", cells[2], err)
	}
	p.CheckAxe()
	p.Screenshot("requests", true)
}
