package ui

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSudoHistory(t *testing.T) {
	event := func(user string) string {
		return fmt.Sprintf(`{"verb":"get","user":{"username":%q},"impersonatedUser":{"groups":["payments-sudoers"]}}`, user) + "\n"
	}
	long := strings.Repeat("x", 2*maxAuditLine+7) + "payments-sudoers\n"
	for name, c := range map[string]struct {
		log     string
		users   []string
		missing string
	}{
		"each use once":            {event("bob") + event("eve") + event("bob"), []string{"bob", "eve"}, ""},
		"another tenant, no event": {strings.ReplaceAll(event("bob"), "payments", "orders") + "payments-sudoers\n", nil, ""},
		"no last line feed":        {strings.TrimSpace(event("bob")), []string{"bob"}, ""},
		"lines that are too long":  {long + event("bob") + long, []string{"bob"}, "left out: 2 lines of the audit log longer than 8 MiB"},
	} {
		t.Run("WEB-U9 the history has each user of this tenant's sudo once, and counts the lines that are too long: "+name, func(t *testing.T) {
			uses, missing := readUses(strings.NewReader(c.log), "payments")
			var users []string
			for _, use := range uses {
				users = append(users, use.User)
			}
			if fmt.Sprint(users) != fmt.Sprint(c.users) || missing != c.missing {
				t.Errorf("got %q, %q", users, missing)
			}
		})
	}
}

func TestAuditLogIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	v := &server{settings: &settings{auditLog: path}}
	if history := v.readSudoHistory("payments", nil); !strings.Contains(history.Missing, "is no regular file") {
		t.Errorf("WEB-U9: %+v", history)
	}
	v.settings.auditLog = filepath.Join(t.TempDir(), "absent")
	if history := v.readSudoHistory("payments", nil); !strings.Contains(history.Missing, "no such file") {
		t.Errorf("WEB-U9: %+v", history)
	}
}
