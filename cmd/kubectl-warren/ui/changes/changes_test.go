package changes_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/changes"
)

func TestQuote(t *testing.T) {
	for _, words := range [][]string{
		{"kubectl", "warren", "create", "pay-x", "-n", "payments", "--labels", "app=web"},
		{"User o'hara $(x)"}, {"`id`"}, {"a b", "", "  "}, {"$HOME", "~", "~root", "*", "?", "[a]", "{a,b}"}, {"a\nb"}, {`back\slash`}, {`"`},
		{"#no comment"}, {"!history"}, {"a;b", "a&b", "a|b", "a>b", "a<b"}, {"='a'"}, {"PATH=x", "b"}, {"é", "\u202e"}, {"-n"}, {"''"},
		{"Role/x;id>PWNED;#"}, {"-vPATH\u200b"}, {"Role/!#:0:s,a,b,\u200b"}, {"^a^b\u200b"}, {"a\x1b[31mb"}, {"100%\u202e'\\ $(id) `id`\x7f"}, {"no UTF-8 \x9b31m"},
	} {
		t.Run("WEB-C3 sh reads each word of a shown command as it is: "+strings.Join(words, " "), func(t *testing.T) {
			output, err := exec.Command("sh", "-c", `show() { for w; do printf '%s\0' "$w"; done; }; show `+changes.Quote(words...)).Output()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
			if diff := cmp.Diff(words, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("WEB-C3 a word that ends with a line feed is quoted with an escape", func(t *testing.T) { // not every sh can read this quoting
		if want, got := `$'100% of Role/it\047s\012'`, changes.Quote("100% of Role/it's\n"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("WEB-C3 a shown command has nothing that an interactive shell replaces", func(t *testing.T) {
		if got := changes.Quote("!!\u200b", "^a^b\u200b"); strings.ContainsAny(got, "!^") {
			t.Errorf("got %s", got)
		}
	})
	if got := changes.Quote("kubectl", "warren", "create", "pay-x", "-n", "payments", "--labels", "app=web"); strings.Contains(got, "'") {
		t.Errorf("plain words are quoted: %s", got)
	}
}

func TestActions(t *testing.T) {
	subject := func(name string) v1alpha1.Subject { return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name} }
	tenant := &v1alpha1.LNamespace{Spec: v1alpha1.LNamespaceSpec{Users: []v1alpha1.Subject{subject("alice")}, Sudoers: []v1alpha1.Subject{subject("eve"), subject("bob")}}}
	tenant.Name = "payments"
	removal, err := changes.RemoveSubject(tenant, "sudoers", 1, "User bob")
	if err != nil {
		t.Fatal(err)
	}
	want := `kubectl patch lnamespaces payments --type=json -p '[{"op":"test","path":"/spec/sudoers/1","value":{"kind":"User","name":"bob","namespace":""}},{"op":"remove","path":"/spec/sudoers/1"}]' --context=prod`
	if diff := cmp.Diff(want, removal.Command([]string{"--context=prod"})); diff != "" {
		t.Errorf("WEB-C3: %s", diff)
	}
	turned, err := changes.AddSubject(tenant, "users", subject("bidi\u202eevil\U000e0041"))
	if err != nil || !strings.Contains(turned.Command(nil), `"name":"bidi\u202eevil`) || strings.ContainsAny(turned.Command(nil), "\u202e\U000e0041") {
		t.Errorf("WEB-C3: %v %s", err, turned.Command(nil))
	}
	addition, err := changes.AddSubject(tenant, "users", subject("o'hara $(x)"))
	if err != nil || !strings.Contains(string(addition.Body), `{"op":"test","path":"/spec/users","value":[{"kind":"User","name":"alice","namespace":""}]}`) {
		t.Errorf("WEB-C3: %v %s", err, addition.Body)
	}
	bare := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", Generation: 7}}
	first, err := changes.AddSubject(bare, "sudoers", subject("alice"))
	if err != nil || !strings.HasPrefix(string(first.Body), `[{"op":"test","path":"/metadata/generation","value":7},{"op":"add","path":"/spec/sudoers"`) {
		t.Errorf("WEB-C4: %v %s", err, first.Body)
	}
	for name, try := range map[string]func() (*changes.Action, error){
		"no such list":         func() (*changes.Action, error) { return changes.AddSubject(tenant, "managers", subject("x")) },
		"no name":              func() (*changes.Action, error) { return changes.AddSubject(tenant, "users", subject("")) },
		"listed already":       func() (*changes.Action, error) { return changes.AddSubject(tenant, "users", subject("alice")) },
		"no such place":        func() (*changes.Action, error) { return changes.RemoveSubject(tenant, "sudoers", 2, "User bob") },
		"a place before all":   func() (*changes.Action, error) { return changes.RemoveSubject(tenant, "sudoers", -1, "User bob") },
		"another at the place": func() (*changes.Action, error) { return changes.RemoveSubject(tenant, "sudoers", 0, "User bob") },
		"a part of the name":   func() (*changes.Action, error) { return changes.RemoveSubject(tenant, "sudoers", 0, "User ev") },
		"a name with a slash":  func() (*changes.Action, error) { return changes.CreateSub("payments", "x/../y", "") },
		"a parent elsewhere":   func() (*changes.Action, error) { return changes.CreateSub("payments/subnamespaces/x?", "y", "") },
		"labels without =":     func() (*changes.Action, error) { return changes.CreateSub("payments", "y", "app") },
		"a label of CSV":       func() (*changes.Action, error) { return changes.CreateSub("payments", "y", `a="b,c"`) },
	} {
		if action, err := try(); err == nil {
			t.Errorf("%s: %+v", name, action)
		}
	}
}

// TestChangedList imitates the two answers of a real API server: operation "test" of the patch fails, and the new list
// is refused.
func TestChangedList(t *testing.T) {
	tenant := &v1alpha1.LNamespace{Spec: v1alpha1.LNamespaceSpec{Users: []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "alice"}}}}
	tenant.Name = "payments"
	removal, err := changes.RemoveSubject(tenant, "users", 0, "User alice")
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"the server rejected our request due to an error in our request": "the list has changed: open the page again",
		"spec.users: the last test user stays":                           "spec.users: the last test user stays",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + message + `"}`))
		}))
		if answer := changes.DryRun(t.Context(), &rest.Config{Host: server.URL}, removal); answer.Done || answer.Sentence != want {
			t.Errorf("WEB-C4: %s: %+v", message, answer)
		}
		server.Close()
	}
}

func TestStore(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		session string
		later   time.Duration
		again   bool
		runs    int
	}{
		"once": {"a", time.Minute, false, 1},
		"WEB-C5 a preview that is run twice sends its request once":       {"a", time.Minute, true, 1},
		"WEB-C5 a preview can't be run more than 5 min after it was made": {"a", 5*time.Minute + time.Second, false, 0},
		"WEB-C5 a preview can't be run from another session":              {"b", time.Minute, false, 0},
		"WEB-C5 a preview can't be run without a session":                 {"", time.Minute, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := clock
			store := changes.NewStore[*changes.Run](func() time.Time { return now }, changes.RunLifetime)
			id := store.Put("a", &changes.Run{})
			now = now.Add(c.later)
			runs := 0
			for range map[bool]int{false: 1, true: 2}[c.again] {
				_, kept := store.Get(c.session, id)
				_, taken := store.Take(c.session, id)
				if kept != taken {
					t.Errorf("kept %t, taken %t", kept, taken)
				}
				if taken {
					runs++
				}
			}
			if runs != c.runs {
				t.Errorf("it ran %d times", runs)
			}
		})
	}
}

func TestFullStore(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := changes.NewStore[int](func() time.Time { now = now.Add(time.Millisecond); return now }, time.Hour)
	var ids []string
	for i := range 257 {
		ids = append(ids, store.Put("a", i))
	}
	if _, ok := store.Get("a", ids[0]); ok {
		t.Error("the oldest value is kept")
	}
	for i, id := range ids[1:] {
		if value, ok := store.Get("a", id); !ok || value != i+1 {
			t.Errorf("value %d: %d %t", i+1, value, ok)
		}
	}
}
