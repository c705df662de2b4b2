package ui

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
)

// sudoHistory tells the uses of sudo of a tenant.
type sudoHistory struct {
	Uses []sudoUse
	// Missing explains why the uses are not shown; "" where they are.
	Missing string
}

// sudoUse is one request with sudo, as docs/guides/audit/sudo.jq prints it.
type sudoUse struct{ Time, User, Verb, URI, Status, Reason string }

// maxAuditLine is the length of the longest event that is read, in bytes.
const maxAuditLine = 8 << 20

// maxUses is how many uses of sudo are shown, the newest.
const maxUses = 200

const reasonKey = v1alpha1.Domain + "/reason"

// readSudoHistory reads the uses of a tenant's sudo in the audit log.
func (v *server) readSudoHistory(tenant string, _ []describe.Event) *sudoHistory {
	if v.settings.auditLog == "" {
		return &sudoHistory{Missing: "the uses of sudo stand in the API server's audit log alone: name it with --audit-log; Events tell changes of the lists"}
	}
	file, err := os.Open(v.settings.auditLog)
	if err != nil {
		return &sudoHistory{Missing: "the audit log can't be read: " + err.Error()}
	}
	defer func() { _ = file.Close() }()
	history := &sudoHistory{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		event := &auditv1.Event{}
		if !strings.Contains(lines.Text(), v1alpha1.SudoersSuffix) || json.Unmarshal(lines.Bytes(), event) != nil {
			continue
		}
		if use, ok := sudoUseOf(event, tenant); ok && !slices.Contains(history.Uses, use) {
			history.Uses = append(history.Uses, use)
		}
	}
	if err := lines.Err(); err != nil {
		history.Missing = "the audit log can't be read to its end: " + err.Error()
	}
	slices.SortStableFunc(history.Uses, func(a, b sudoUse) int { return strings.Compare(b.Time, a.Time) })
	history.Uses = history.Uses[:min(len(history.Uses), maxUses)]
	return history
}

// sudoUseOf returns the use of a tenant's sudo that an audit event tells; ok is false for other events.
func sudoUseOf(event *auditv1.Event, tenant string) (use sudoUse, ok bool) {
	as := event.ImpersonatedUser
	if as == nil || !slices.Contains(as.Groups, v1alpha1.SudoersGroup(tenant)) {
		return use, false
	}
	use = sudoUse{
		Time: event.RequestReceivedTimestamp.UTC().Format("2006-01-02T15:04:05.000000Z"), User: event.User.Username, Verb: event.Verb,
		URI: event.RequestURI, Reason: strings.Join(as.Extra[reasonKey], "; "),
	}
	if event.ResponseStatus != nil {
		use.Status = strconv.Itoa(int(event.ResponseStatus.Code))
	}
	return use, true
}
