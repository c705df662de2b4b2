package ui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
)

// drawRequests returns the part of a tenant's page about SudoRequests, and what the page lacks.
func drawRequests(t *testing.T, open []rights.OpenRequest) (html string, unread []string) {
	t.Helper()
	page, out := &tenantPage{Name: "payments"}, bytes.Buffer{}
	page.showRequests(open, &unread)
	if err := parseTemplates(&settings{}).ExecuteTemplate(&out, "requests", page); err != nil {
		t.Fatal(err)
	}
	return out.String(), unread
}

func TestRequestsOfTenant(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC))
	t.Run("WEB-U16 the page of a tenant shows who has sudo on request, why and until when, and what waits for approvals", func(t *testing.T) {
		html, _ := drawRequests(t, []rights.OpenRequest{
			{Name: "sudo-1", User: "carol", Group: "pay-oncall", Reason: "INC-42", Duration: "1h", State: "Granted", Until: &until,
				BreakGlass: true},
			{Name: "sudo-2", User: "dave", Reason: "INC-43", Duration: "2h", State: "Pending", Message: "1 more of 1 approvals needed"}})
		for _, want := range []string{"<th scope=\"row\">carol of pay-oncall<td>Granted, without approval<td>",
			`<time datetime="2026-03-01T12:30:00Z">`, "<td>1h<td>INC-42<td>sudo-1</tr>",
			"<th scope=\"row\">dave<td>Pending: 1 more of 1 approvals needed<td><td>2h<td>INC-43<td>sudo-2</tr>"} {
			if !strings.Contains(html, want) {
				t.Errorf("no %q in\n%s", want, html)
			}
		}
	})
	t.Run("WEB-U16 a hostile name, reason or message of a request is shown as text", func(t *testing.T) {
		const hostile = "<script>\u202e\x1b[2J"
		html, _ := drawRequests(t, []rights.OpenRequest{
			{Name: "sudo-1", User: hostile, Group: hostile, Reason: hostile, Duration: hostile, State: hostile, Message: hostile}})
		if strings.Contains(html, "<script>") || strings.ContainsAny(html, "\u202e\x1b") {
			t.Errorf("%q", html)
		}
	})
	t.Run("a page without requests, and one with too many", func(t *testing.T) {
		if html, _ := drawRequests(t, nil); strings.Contains(html, "<") {
			t.Errorf("%q", html)
		}
		html, unread := drawRequests(t, make([]rights.OpenRequest, maxRequests+7))
		if strings.Count(html, "<tr><th scope") != maxRequests || !strings.HasPrefix(strings.Join(unread, ""), "7 older requests") {
			t.Errorf("%d rows, %v", strings.Count(html, "<tr><th scope"), unread)
		}
	})
}
