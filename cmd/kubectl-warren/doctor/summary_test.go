package doctor

import "testing"

func TestSummary(t *testing.T) {
	t.Run("SEC-X55 the last line of doctor counts errors, then warnings, and names up to five checks of each; then those that are ok",
		func(t *testing.T) {
			checks := []Check{{Name: "a", Status: OK}, {Name: "b", Status: Warning}, {Name: "c", Status: Error}}
			for _, name := range []string{"d", "e", "f", "g", "h"} {
				checks = append(checks, Check{Name: name, Status: Error})
			}
			const want = "6 errors: c, d, e, f, g and 1 more; 1 warning: b; 1 of 8 checks are ok\n"
			if got := summariseChecks(checks); got != want {
				t.Errorf("%q, not %q", got, want)
			}
			if got := summariseChecks(checks[:1]); got != "1 of 1 checks are ok\n" {
				t.Errorf("%q", got)
			}
		})
	t.Run("SEC-X56 on a terminal doctor colours the results, unless NO_COLOR is set", func(t *testing.T) {
		const table = "error     c   it failed; error \nok        a   ok\n"
		const coloured = "\x1b[31merror\x1b[0m     c   it failed; error \n\x1b[32mok\x1b[0m        a   ok\n"
		if got := string(colourChecks([]byte(table), true)); got != coloured {
			t.Errorf("on a terminal: %q", got)
		}
		if got := string(colourChecks([]byte(table), false)); got != table {
			t.Errorf("elsewhere: %q", got)
		}
		t.Setenv("NO_COLOR", "1")
		if got := string(colourChecks([]byte(table), true)); got != table {
			t.Errorf("with NO_COLOR: %q", got)
		}
	})
}
