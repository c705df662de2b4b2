package sudo

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// subjectsOwn answers in place of kubectl in these tests. It reports whether kubectl takes a flag as its own. After
// "rolebinding" it returns false, because "create rolebinding" has its own --user.
func subjectsOwn(_ *pflag.Flag, behind []string) bool {
	return !slices.Contains(behind, "rolebinding")
}

// ACC-P01, ACC-P02 and ACC-P08: what the plugin reads in the flags that are kubectl's own.
func TestRead(t *testing.T) {
	type said struct{ namespace, context, server, tenant, user string }
	cases := map[string]struct {
		line string
		want said
	}{
		"nothing":                   {"get pods", said{}},
		"-n x":                      {"get pods -n pay-web", said{namespace: "pay-web"}},
		"-nx":                       {"get -npay-web pods", said{namespace: "pay-web"}},
		"-n=x":                      {"get pods -n=pay-web", said{namespace: "pay-web"}},
		"--namespace=x":             {"get pods --namespace=pay-web", said{namespace: "pay-web"}},
		"--namespace x":             {"get pods --namespace pay-web", said{namespace: "pay-web"}},
		"the last counts":           {"get pods -n shop -npay-web", said{namespace: "pay-web"}},
		"behind switches":           {"exec -itn pay-web web-0 -- sh", said{namespace: "pay-web"}},
		"behind switches of logs":   {"logs -fpn pay-web web-0", said{namespace: "pay-web"}},
		"in another flag's value":   {"get pods -ojsonpath={.n} -lname=n", said{}},
		"-f takes a file":           {"apply -fn pay-web", said{}},
		"behind --":                 {"exec web-0 -- ls -n shop", said{}},
		"before and behind --":      {"exec -n pay-web web-0 -- ls -n shop", said{namespace: "pay-web"}},
		"-- as a value":             {"get pods -n -- pods", said{namespace: "--"}},
		"at the end, without value": {"get pods -n", said{}},
		"half a letter":             {"get pods -ñ pay-web", said{}},
		"a dash is a file":          {"apply -f - -n pay-web", said{namespace: "pay-web"}},
		"connection": {"get pods --context c -s https://s --insecure-skip-tls-verify --token t",
			said{context: "c", server: "https://s"}},
		"-A=false":                   {"get pods -A=false -n x", said{namespace: "x"}},
		"edit lns":                   {"edit lns payments", said{tenant: "payments"}},
		"with a slash":               {"get lns/payments -o yaml", said{tenant: "payments"}},
		"whole name":                 {"get lnamespaces.tenancy.warren.dev payments", said{tenant: "payments"}},
		"singular, with a slash":     {"patch LNamespace.tenancy.warren.dev/payments -p {}", said{tenant: "payments"}},
		"with a version":             {"get lnamespaces.v1alpha1.tenancy.warren.dev payments", said{tenant: "payments"}},
		"of another group":           {"get lns.example.com payments", said{}},
		"flags between":              {"edit lns -o=yaml payments", said{tenant: "payments"}},
		"flag with a value between":  {"edit lns -o yaml payments", said{tenant: "payments"}},
		"a switch between":           {"get lns -w payments", said{tenant: "payments"}},
		"a long flag between":        {"patch lns --type merge payments -p {}", said{tenant: "payments"}},
		"several":                    {"get lns payments shop", said{tenant: "payments"}},
		"none":                       {"get lns", said{}},
		"behind -- it is no tenant":  {"exec web-0 -- get lns payments", said{}},
		"a command of the same name": {"lns payments", said{}},
		"the namespace beside it":    {"get lns payments -n shop", said{tenant: "payments", namespace: "shop"}},
		"kubectl's --user":           {"get pods --user admin -n shop", said{user: "admin", namespace: "shop"}},
		"the command's --user":       {"create rolebinding b --user dave --user=erin -n shop", said{namespace: "shop"}},
		"its value is no tenant":     {"create rolebinding lns --user dave", said{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			call := newCall(genericiooptions.IOStreams{}, "")
			tenant, err := readWords(call.connection, strings.Fields(c.line), subjectsOwn)
			if err != nil {
				t.Fatal(err)
			}
			f := call.flags
			got := said{*f.Namespace, *f.Context, *f.APIServer, tenant, *f.AuthInfoName}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const all, as = "-A can't be used with sudo, which covers only one tenant: name a namespace with -n", "--as is set by kubectl sudo"
	cases := map[string]string{
		"get pods -A":                      all,
		"get pods --all-namespaces":        all,
		"get pods --all-namespaces=true":   all,
		"get pods -wA":                     all,
		"get -Af file":                     all,
		"get pods --as=x":                  as,
		"get pods --as x":                  as,
		"get pods --as-group=x":            "--as-group is set by kubectl sudo",
		"get pods --as-uid=1":              "--as-uid can't be used with sudo: a sudoer may not impersonate a UID",
		"get pods --as-user-extra=a=b":     "--as-user-extra is set by kubectl sudo: give a reason with --reason before COMMAND",
		"get pods --disable-compression=x": `invalid argument "x" for --disable-compression: strconv.ParseBool: parsing "x": invalid syntax`,
	}
	for line, want := range cases {
		t.Run(line, func(t *testing.T) {
			_, err := readWords(newCall(genericiooptions.IOStreams{}, "").connection, strings.Fields(line), subjectsOwn)
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
