package ui

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/internal/text"
)

// sudoHistory lists the uses of a tenant's sudo.
type sudoHistory struct {
	Uses []sudoUse
	// Missing explains why no uses are shown, or which are left out; "" where all are shown.
	Missing string
}

// sudoUse is one request with sudo, as docs/guides/audit/sudo.jq prints it.
type sudoUse struct{ Time, User, Verb, URI, Status, Reason string }

// maxAuditLine is the length of the longest event that is read, in bytes.
const maxAuditLine = 8 << 20

// maxUses is how many uses of sudo are shown at most: the newest.
const maxUses = 200

const reasonKey = v1alpha1.Domain + "/reason"

// readSudoHistory reads the uses of a tenant's sudo in the audit log.
func (v *server) readSudoHistory(tenant string, _ []describe.Event) *sudoHistory {
	if v.settings.auditLog == "" {
		return &sudoHistory{Missing: "only the API server's audit log shows the uses of sudo: name it with --audit-log; " +
			"Events show changes of the lists"}
	}
	file, err := openRegular(v.settings.auditLog)
	if err != nil {
		return &sudoHistory{Missing: "the audit log can't be read: " + err.Error()}
	}
	defer func() { _ = file.Close() }()
	uses, missing := readUses(file, tenant)
	slices.SortStableFunc(uses, func(a, b sudoUse) int { return strings.Compare(b.Time, a.Time) })
	return &sudoHistory{Uses: uses[:min(len(uses), maxUses)], Missing: missing}
}

// openRegular opens a file. It refuses what is no regular file, since to open a pipe can take forever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// readUses returns the uses of a tenant's sudo in an audit log, each once, and what it could not read.
func readUses(log io.Reader, tenant string) (uses []sudoUse, missing string) {
	seen, tooLong := sets.New[sudoUse](), 0
	lines := bufio.NewReader(log)
	var line []byte
	for {
		var long bool
		var err error
		line, long, err = readLine(lines, line)
		event := &auditv1.Event{}
		switch {
		case long:
			tooLong++
		case bytes.Contains(line, []byte(v1alpha1.SudoersSuffix)) && json.Unmarshal(line, event) == nil:
			if use, ok := sudoUseOf(event, tenant); ok && !seen.Has(use) {
				seen.Insert(use)
				uses = append(uses, use)
			}
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			missing = "the audit log can't be read to its end: " + err.Error()
		case tooLong > 0:
			missing = fmt.Sprintf("left out: %s of the audit log longer than 8 MiB", text.Count(tooLong, "line", "lines"))
		}
		return uses, missing
	}
}

// readLine reads a line into a buffer. long reports that the line has more than maxAuditLine bytes, and is not
// complete.
func readLine(from *bufio.Reader, buffer []byte) (line []byte, long bool, err error) {
	line = buffer[:0]
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxAuditLine; !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// maxAuditText is the most bytes of a text that the history shows of an audit event.
const maxAuditText = 1024

// sudoUseOf returns the use of a tenant's sudo that an audit event records; ok is false for other events.
func sudoUseOf(event *auditv1.Event, tenant string) (use sudoUse, ok bool) {
	as := event.ImpersonatedUser
	if as == nil || !slices.Contains(as.Groups, v1alpha1.SudoersGroup(tenant)) {
		return use, false
	}
	use = sudoUse{
		Time: event.RequestReceivedTimestamp.UTC().Format("2006-01-02T15:04:05.000000Z"), User: text.Cut(event.User.Username, maxAuditText), Verb: event.Verb,
		URI: text.Cut(event.RequestURI, maxAuditText), Reason: text.Cut(strings.Join(as.Extra[reasonKey], "; "), maxAuditText),
	}
	if event.ResponseStatus != nil {
		use.Status = strconv.Itoa(int(event.ResponseStatus.Code))
	}
	return use, true
}
