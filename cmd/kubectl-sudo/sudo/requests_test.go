package sudo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-sudo/sudo"
)

// office is an API server with the requests of tenant payments. carol may ask there, and is no user of any tenant.
type office struct {
	t        *testing.T
	mu       sync.Mutex // guards the fields below
	requests []v1alpha1.SudoRequest
	granted  bool
	sent     []string // the bodies of creations and patches
}

func (o *office) serve() string {
	server := httptest.NewServer(o)
	o.t.Cleanup(server.Close)
	return server.URL
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(object any) { _ = json.NewEncoder(w).Encode(object) }
	user := r.Header.Get("Impersonate-User")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		if user == "" {
			user = "carol"
		}
		answer(authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}})
	case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
		body, _ := io.ReadAll(r.Body)
		asked := &authorizationv1.SelfSubjectRulesReview{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, asked); err != nil { // the client sends Protobuf
			o.t.Error(err)
		}
		asked.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"}
		asked.Status.ResourceRules = o.rules(asked.Spec.Namespace)
		answer(asked)
	case strings.HasSuffix(path, "/payments/sudorequests") && r.Method == http.MethodGet:
		answer(v1alpha1.SudoRequestList{TypeMeta: kindOf("SudoRequestList"), Items: o.requests})
	case strings.HasSuffix(path, "/payments/sudorequests"):
		one := v1alpha1.SudoRequest{}
		o.record(r, &one)
		one.Name = "sudo-1"
		answer(one)
	case strings.Contains(path, "/payments/sudorequests/") && r.Method == http.MethodGet:
		answer(o.requests[0])
	case strings.Contains(path, "/payments/sudorequests/"):
		o.record(r, nil)
		answer(o.requests[0])
	default:
		w.WriteHeader(http.StatusForbidden)
		answer(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonForbidden,
			Code: http.StatusForbidden, Message: "User cannot get " + path})
	}
}

func kindOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

func (o *office) record(r *http.Request, into any) {
	var body json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&body)
	if into != nil {
		_ = json.Unmarshal(body, into)
	}
	o.sent = append(o.sent, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+" "+string(body))
}

// rules are carol's in a namespace.
func (o *office) rules(namespace string) []authorizationv1.ResourceRule {
	switch {
	case namespace == "payments":
		return []authorizationv1.ResourceRule{{Verbs: []string{"create"}, APIGroups: []string{v1alpha1.Domain},
			Resources: []string{"sudorequests"}}}
	case namespace == v1alpha1.SudoNamespace && o.granted:
		return []authorizationv1.ResourceRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"},
			ResourceNames: []string{"payments"}}}
	}
	return nil
}

// filed returns a request with a state.
func filed(name, user string, status metav1.ConditionStatus, reason v1alpha1.Reason, message string) v1alpha1.SudoRequest {
	r := v1alpha1.SudoRequest{TypeMeta: kindOf("SudoRequest"), ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: name},
		Spec: v1alpha1.SudoRequestSpec{User: user, Reason: "Restore the ledger", Duration: "1h"}}
	r.Status.Conditions = []metav1.Condition{{Type: "Active", Status: status, Reason: string(reason), Message: message}}
	if status == metav1.ConditionTrue {
		r.Status.EndTime = &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	}
	return r
}

func TestRequestCommands(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	pending := filed("sudo-1", "carol", no, v1alpha1.ReasonPending, "1 more of 1 approvals needed, from User mia")
	granted := filed("sudo-1", "carol", yes, v1alpha1.ReasonGranted, "until noon")
	denied := filed("sudo-2", "carol", no, v1alpha1.ReasonDenied, "denied by lea: not today")
	others := filed("sudo-3", "otto", no, v1alpha1.ReasonPending, "1 more")
	const head = "NAME     USER    FOR   STATE     ENDS   REASON\n"
	for name, c := range map[string]struct {
		line     []string
		requests []v1alpha1.SudoRequest
		sent     []string
		out      string
		problem  string
	}{
		"REQ-P2 kubectl sudo request asks for an hour in one's own name": {
			[]string{"request", "--tenant", "payments", "--reason", "Restore the ledger"}, nil,
			[]string{`POST sudorequests {"kind":"SudoRequest","apiVersion":"tenancy.warren.dev/v1alpha1","metadata":{"generateName":"sudo-",` +
				`"namespace":"payments"},"spec":{"user":"carol","reason":"Restore the ledger","duration":"1h","breakGlass":false,"decisions":[]},` +
				`"status":{}}`},
			"carol asks for sudo in payments for 1h. To approve: kubectl sudo approve sudo-1 --tenant payments\n", ""},
		"flags in front": {[]string{"--tenant", "payments", "--reason", "Restore the ledger", "request", "--for", "30m", "--break-glass"}, nil,
			[]string{`POST sudorequests {"kind":"SudoRequest","apiVersion":"tenancy.warren.dev/v1alpha1","metadata":{"generateName":"sudo-",` +
				`"namespace":"payments"},"spec":{"user":"carol","reason":"Restore the ledger","duration":"30m","breakGlass":true,"decisions":[]},` +
				`"status":{}}`},
			"carol asks for sudo in payments for 30m. To approve: kubectl sudo approve sudo-1 --tenant payments\n", ""},
		"no reason": {[]string{"request", "--tenant", "payments"}, nil, nil, "",
			"--reason is missing: say why, for the approvers and for the record"},
		"no tenant":       {[]string{"request", "--reason", "Restore the ledger"}, nil, nil, "", "no tenant is named: add --tenant TENANT"},
		"as somebody":     {[]string{"approve", "sudo-1", "--tenant=payments", "--as=mia"}, nil, nil, "", "--as is set by kubectl sudo"},
		"an unknown flag": {[]string{"approve", "--foo"}, nil, nil, "", "unknown flag: --foo: see kubectl sudo approve --help"},
		"REQ-P2 kubectl sudo approve adds a decision in one's own name": {
			[]string{"approve", "sudo-3", "-n", "payments", "--comment", "fine"}, []v1alpha1.SudoRequest{others},
			[]string{`PATCH sudo-3 [{"op":"add","path":"/spec/decisions/-","value":{"user":"carol","verdict":"Approve","comment":"fine"}}]`},
			"approved sudo-3 of otto, who asks for 1h: Restore the ledger\n", ""},
		"by a group": {[]string{"deny", "sudo-3", "--tenant", "payments", "--group", "leads"}, []v1alpha1.SudoRequest{others},
			[]string{`PATCH sudo-3 [{"op":"add","path":"/spec/decisions/-","value":{"user":"carol","group":"leads","verdict":"Deny"}}]`},
			"denied sudo-3 of otto, who asks for 1h: Restore the ledger\n", ""},
		"no name": {[]string{"approve", "--tenant", "payments"}, nil, nil, "",
			"kubectl sudo approve takes the name of one request, and 0 are given: kubectl sudo list has the names"},
		"REQ-P2 kubectl sudo end without a name ends one's only open request": {
			[]string{"end", "--tenant", "payments"}, []v1alpha1.SudoRequest{granted, denied, others},
			[]string{`PATCH sudo-1 [{"op":"add","path":"/spec/decisions/-","value":{"user":"carol","verdict":"End"}}]`},
			"ended sudo-1 of carol, who asks for 1h: Restore the ledger\n", ""},
		"nothing to end": {[]string{"end", "--tenant", "payments"}, []v1alpha1.SudoRequest{denied}, nil, "",
			"carol has no open request in payments: nothing to end"},
		"several to end": {[]string{"end", "--tenant", "payments"},
			[]v1alpha1.SudoRequest{granted, filed("sudo-4", "carol", no, v1alpha1.ReasonPending, "")}, nil, "",
			"carol has several open requests in payments, choose one: sudo-1, sudo-4"},
		"REQ-P2 kubectl sudo list prints who asked, the state and the end": {[]string{"list", "--tenant", "payments"},
			[]v1alpha1.SudoRequest{granted, others}, nil, "NAME     USER    FOR   STATE     ENDS                   REASON\n" +
				"sudo-1   carol   1h    Granted   2026-03-01T12:00:00Z   Restore the ledger\n" +
				"sudo-3   otto    1h    Pending                          Restore the ledger\n", ""},
		"only one's own": {[]string{"list", "--mine", "--tenant", "payments"}, []v1alpha1.SudoRequest{denied, others}, nil,
			strings.Replace(head, "STATE  ", "STATE ", 1) + "sudo-2   carol   1h    Denied          Restore the ledger\n", ""},
		"only pending ones": {[]string{"list", "--pending", "--tenant", "payments"}, []v1alpha1.SudoRequest{granted, pending, others}, nil,
			head + "sudo-1   carol   1h    Pending          Restore the ledger\nsudo-3   otto    1h    Pending          Restore the ledger\n", ""},
		"REQ-P2 kubectl sudo request --wait ends when sudo is granted": {
			[]string{"request", "--wait", "--tenant", "payments", "--reason", "Restore the ledger"}, []v1alpha1.SudoRequest{granted}, nil,
			"carol asks for sudo in payments for 1h. To approve: kubectl sudo approve sudo-1 --tenant payments\n" +
				"granted until 2026-03-01T12:00:00Z: kubectl sudo --tenant payments COMMAND\n", ""},
		"REQ-P2 kubectl sudo request --wait fails when the request is denied": {
			[]string{"request", "--wait", "--tenant", "payments", "--reason", "Restore the ledger"}, []v1alpha1.SudoRequest{denied}, nil,
			"carol asks for sudo in payments for 1h. To approve: kubectl sudo approve sudo-1 --tenant payments\n",
			"not granted: Denied: denied by lea: not today"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &office{t: t, requests: c.requests}
			status, out, problems := run(t, program(t), append(c.line, "--server", o.serve())...)
			if want := map[bool]string{true: "", false: "error: " + c.problem + "\n"}[c.problem == ""]; problems != want ||
				(status == 0) != (c.problem == "") {
				t.Errorf("status %d, stderr %q, want %q", status, problems, want)
			}
			if diff := cmp.Diff(c.out, out); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.sent, o.sent); c.sent != nil && diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletionOfRequests(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	requests := []v1alpha1.SudoRequest{
		filed("sudo-1", "carol", yes, v1alpha1.ReasonGranted, "until noon"), filed("sudo-2", "otto", no, v1alpha1.ReasonPending, "1 more"),
		filed("sudo-3", "otto", no, v1alpha1.ReasonDenied, "denied by lea"), filed("sudo-4", "carol", no, v1alpha1.ReasonPending, "1 more"),
		filed("more-5", "otto", yes, v1alpha1.ReasonGranted, "until noon"),
	}
	for name, c := range map[string]struct {
		line []string
		want string
	}{
		"REQ-P4 the tab key completes approve by the requests of others that wait": {[]string{"approve", "--tenant", "payments", ""}, "sudo-2\n"},
		"REQ-P4 the tab key completes deny by what is not over": {
			[]string{"--tenant", "payments", "deny", ""}, "sudo-1\nsudo-2\nsudo-4\nmore-5\n"},
		"REQ-P4 the tab key completes the beginning of a name": {[]string{"end", "-n", "payments", "mo"}, "more-5\n"},
		"a second name":            {[]string{"end", "--tenant", "payments", "sudo-1", ""}, ""},
		"requests can't be listed": {[]string{"end", "--tenant", "shop", ""}, ""},
		"without a tenant":         {[]string{"end", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			words := append([]string{"--server", (&office{t: t, requests: requests}).serve()}, c.line...)
			_, out, problems := runAs(t, "/bin/kubectl_complete-sudo", program(t), words...)
			if out != c.want+":4\n" {
				t.Errorf("stdout %q, stderr %q, want %q", out, problems, c.want)
			}
		})
	}
}

func TestCommandBySudoOnRequest(t *testing.T) {
	const ask = "error: you have no sudo in payments now; ask for it: kubectl sudo request --tenant payments --reason TEXT\n"
	for name, c := range map[string]struct {
		granted bool
		line    []string
		problem string
	}{
		"REQ-P3 without sudo, kubectl sudo COMMAND tells whoever may ask how to ask": {
			false, []string{"--tenant", "payments", "get", "pods"}, ask},
		"REQ-P3 the same where the namespace tells the tenant": {false, []string{"get", "pods", "-n", "payments"}, ask},
		"where carol may not ask": {
			false, []string{"--tenant", "shop", "get", "pods"}, "error: carol is not a sudoer of shop\n"},
		"no namespace": {
			true, []string{"get", "pods"}, "error: choose a tenant with --tenant before COMMAND: payments\n"},
		"REQ-P3 with sudo on request, --reason is refused": {true, []string{"--tenant", "payments", "--reason", "because", "get", "pods"},
			"error: --reason can't be used with sudo on request: the request has a reason\n"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, problems := run(t, program(t), append([]string{"--server", (&office{t: t, granted: c.granted}).serve()}, c.line...)...)
			if status != 1 || problems != c.problem {
				t.Errorf("status %d, stderr %q", status, problems)
			}
		})
	}
	t.Run("REQ-P3 --list has the tenants of sudo on request", func(t *testing.T) {
		_, out, problems := run(t, program(t), "--list", "--server", (&office{t: t, granted: true}).serve())
		if out != "payments\n" || problems != "" {
			t.Errorf("stdout %q, stderr %q", out, problems)
		}
	})
}

// The plugin's process is replaced by kubectl, so it is a process of its own: this test, once more.
func TestGrantRunsKubectlAsTheTemporarySudoer(t *testing.T) {
	const variable = "SUDO_TEST_LINE"
	if line := os.Getenv(variable); line != "" {
		os.Exit(sudo.Run(strings.Fields(line), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, "v1.2.3"))
	}
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Run("REQ-P3 with sudo on request, kubectl runs as the temporary sudoer, without a group", func(t *testing.T) {
		server := (&office{t: t, granted: true}).serve()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGrantRunsKubectlAsTheTemporarySudoer$")
		cmd.Env = append(os.Environ(), "KUBECTL="+kubectl, "KUBECONFIG=/dev/null",
			variable+"=/bin/kubectl-sudo --server "+server+" --tenant payments get pods")
		out, err := cmd.CombinedOutput()
		want := "get --server=" + server + " --as=system:serviceaccount:warren-sudo:payments pods\n"
		if err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
	})
}
