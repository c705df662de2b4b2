package plugin_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/plugin"
)

// answer is the result of a command line.
type answer struct {
	status      int
	out, errOut string
}

// run carries out a command line without a reachable API server.
func run(t *testing.T, line ...string) answer {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	build := invocation.Build{Version: "v1.2.3", Commit: "abc", GoVersion: "go1", Platform: "os/arch"}
	status := plugin.Run(t.Context(), line, streams, build)
	return answer{status, out.String(), errOut.String()}
}

const (
	ignored = "--namespace is not used by this command: "
	nowhere = "https://127.0.0.1:1"
)

func TestCreateLNS(t *testing.T) {
	const created = `apiVersion: tenancy.warren.dev/v1alpha1
kind: LNamespace
metadata:
  name: x
spec:
  billing:
    costCenter: "1"
  managers:
  - kind: User
    name: mia
  sudoers:
  - kind: Group
    name: ops
  users:
  - kind: User
    name: alice
`
	cases := map[string]struct {
		line string
		want answer
	}{
		"ACC-P07 kubectl create lns with --dry-run=client -o yaml prints the LNamespace": {
			"/bin/kubectl-create-lns x --user alice --manager mia --sudoer-group ops --cost-center 1 --dry-run=client -o yaml",
			answer{0, created, ""},
		},
		"under kubectl warren": {
			"kubectl-warren create-lns x --user alice --manager mia --sudoer-group ops --cost-center 1 --dry-run=client -o yaml",
			answer{0, created, ""},
		},
		"every list and kind": {
			"kubectl-create-lns x --user CN=a,OU=b --user bob --user-serviceaccount ci:d --manager-group g --sudoer-serviceaccount ci/e --owner o " +
				"--template t --dry-run=client -o json",
			answer{0, `{
    "apiVersion": "tenancy.warren.dev/v1alpha1",
    "kind": "LNamespace",
    "metadata": {
        "name": "x"
    },
    "spec": {
        "billing": {
            "owner": "o"
        },
        "managers": [
            {
                "kind": "Group",
                "name": "g"
            }
        ],
        "sudoers": [
            {
                "kind": "ServiceAccount",
                "name": "e",
                "namespace": "ci"
            }
        ],
        "template": "t",
        "users": [
            {
                "kind": "User",
                "name": "CN=a,OU=b"
            },
            {
                "kind": "User",
                "name": "bob"
            },
            {
                "kind": "ServiceAccount",
                "name": "d",
                "namespace": "ci"
            }
        ]
    }
}
`, ""},
		},
		"what it says": {"kubectl-create-lns.exe x --dry-run=client", answer{0, "lnamespace.tenancy.warren.dev/x created (dry run)\n", ""}},
		"name only":    {"kubectl-create-lns x --dry-run=client -o name", answer{0, "lnamespace.tenancy.warren.dev/x\n", ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, run(t, strings.Fields(c.line)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// SUB-X8: in an error case stdout is empty, and the error is one line.
func TestRefusals(t *testing.T) {
	cases := map[string]struct{ line, want string }{
		"unknown command": {"kubectl-warren lits", `unknown command "lits" for "kubectl warren": see kubectl warren --help`},
		"unknown subcommand": {"kubectl-warren template foo",
			`unknown command "foo" for "kubectl warren template": see kubectl warren template --help`},
		"SUB-X13 for an unknown command with an unknown flag, the error names the command": {
			"kubectl-warren config set-resource secrets --mode Propagate",
			`unknown command "set-resource" for "kubectl warren config": see kubectl warren config --help`},
		"SUB-X13 for an unknown flag of a group, such as config, the error names the flag": {
			"kubectl-warren --mode x config", "unknown flag: --mode: see kubectl warren config --help"},
		"SUB-X13 for an unknown flag of a command, such as config view, the error names the flag": {
			"kubectl-warren config view --mode x", "unknown flag: --mode: see kubectl warren config view --help"},
		"unknown shell": {"kubectl-warren completion cmd",
			`unknown command "cmd" for "kubectl warren completion": see kubectl warren completion --help`},
		"SUB-X44 sudo after kubectl warren is refused with the right order": {"kubectl-warren sudo tree",
			`unknown command "sudo" for "kubectl warren": kubectl sudo is a plugin of its own, and begins the line: kubectl sudo warren …`},
		"SUB-X22 a flag that is true or false, as --watch is, is refused with this rule": {"kubectl-warren get cm --watch=x",
			`invalid argument "x" for --watch: must be true or false, or left out`},
		"unknown flag": {"kubectl-warren tree --foo", "unknown flag: --foo: see kubectl warren tree --help"},
		"SUB-X41 a command that does not use --namespace names what to write instead: the root of a tree": {"kubectl-warren tree -n x",
			ignored + "name the root of a tree, as in kubectl warren tree payments"},
		"SUB-X41 a command that makes an LNamespace refuses --namespace and names the one that makes a sub-namespace": {
			"kubectl-create-lns x -n x", ignored + "an LNamespace is in no namespace, and kubectl warren create makes a sub-namespace"},
		"output": {"kubectl-warren tree -o xml",
			`invalid argument "xml" for "-o, --output" flag: must be json, yaml, name or wide`},
		"dry run": {"kubectl-create-lns x --dry-run=yes",
			`invalid argument "yes" for "--dry-run" flag: must be none, client or server`},
		"service account": {"kubectl-create-lns x --user-serviceaccount ci",
			`invalid argument "ci" for "--user-serviceaccount" flag: must be NAMESPACE:NAME or NAMESPACE/NAME`},
		"three parts": {"kubectl-create-lns x --user-serviceaccount a:b:c",
			`invalid argument "a:b:c" for "--user-serviceaccount" flag: must be NAMESPACE:NAME or NAMESPACE/NAME`},
		"no name": {"kubectl-create-lns", "name one LNamespace, not 0: kubectl create lns NAME"},
		"bad name": {"kubectl-create-lns Pay.x --dry-run=client",
			`invalid LNamespace name "Pay.x": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"bad root": {"kubectl-warren tree a/b -s " + nowhere,
			`invalid namespace name "a/b": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"get nothing":        {"kubectl-warren get", "name one kind, or several with commas between, not 0: kubectl warren get KIND[,KIND…]"},
		"get in a namespace": {"kubectl-warren get pods -n x", ignored + "name a tree by its root, as in --tenant payments"},
		"get of a wrong name": {"kubectl-warren ns --tenant a/b -s " + nowhere,
			`--tenant: invalid tenant name "a/b": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"get in a wrong format": {"kubectl-warren get pods -o xml -s " + nowhere,
			`unable to match a printer suitable for the output format "xml", allowed formats are: ` +
				`go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml`},
		"SUB-X22 a flag that needs a number, as --depth does, is refused with this rule": {"kubectl-warren graph --depth x",
			`invalid argument "x" for --depth: must be a whole number`},
		"access of nobody":    {"kubectl-warren access", "name one tenant, not 0: kubectl warren access TENANT"},
		"access, a namespace": {"kubectl-warren access a -n b", ignored + "leave it out"},
		"access, a wrong name": {"kubectl-warren access a/b",
			`invalid tenant name "a/b": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"set nothing": {"kubectl-warren set x",
			"say what to set: --parent NAME, --root, --allow-cascading-deletion or --forbid-cascading-deletion"},
		"set both": {"kubectl-warren set x --parent y --root", "--parent and --root contradict each other: a root has no parent"},
		"set and unset": {"kubectl-warren set x -a -f",
			"--allow-cascading-deletion and --forbid-cascading-deletion contradict each other: give one"},
		"set a wrong name": {"kubectl-warren set a/b --root",
			`invalid namespace name "a/b": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"set a wrong parent": {"kubectl-warren set x --parent=",
			`--parent: invalid namespace name "": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end`},
		"set two":      {"kubectl-warren set x y --root", "name one namespace, not 2: kubectl warren set NAMESPACE"},
		"who-can what": {"kubectl-warren who-can get", "name a verb and a resource: kubectl warren who-can VERB RESOURCE[/NAME]"},
		"why what":     {"kubectl-warren why bob get", "name a user, a verb and a resource: kubectl warren why USER VERB RESOURCE[/NAME]"},
		"why, a wrong format": {"kubectl-warren why bob get pods -o wide",
			`invalid argument "wide" for "-o, --output" flag: must be json or yaml`},
		"no server": {"kubectl-warren tree -o json -s " + nowhere, "can't reach the API server " + nowhere + " (dial tcp 127.0.0.1:1: " +
			"connect: connection refused): check --server, --context and the kubeconfig"},
		"SUB-X27 an unknown command is named as such, also with --namespace": {"kubectl-warren creat x -n payments",
			`unknown command "creat" for "kubectl warren": did you mean create or create-lns?`},
		"SUB-X27 a flag without its value is refused with the values that it takes": {"kubectl-warren create x -n b --dry-run",
			"flag needs an argument: --dry-run: it must be none, client or server"},
		"SUB-X28 without a kubeconfig, the error is that there is none": {"kubectl-warren tree",
			"no API server is named: there is no kubeconfig, or its context names no cluster; set KUBECONFIG or --kubeconfig (kubectl would ask " +
				"http://localhost:8080, and nothing answers there)"},
		"SUB-X29 trace without a namespace asks for one": {"kubectl-warren trace secret/x",
			"no namespace is named, and the kubeconfig's context has none: add -n NAMESPACE"},
		"no context": {"kubectl-warren tree --context nope",
			`finding the API server by the kubeconfig and flags: context "nope" does not exist`},
		"no kubeconfig": {"kubectl-warren tree --kubeconfig /nofile", "finding the API server by the kubeconfig and flags: stat /nofile: no " +
			"such file or directory"},
	}
	refuse(t, cases)
}

// A name that other plugins have leads to the name here.
func TestNamesOfOtherPlugins(t *testing.T) {
	const sub = "create or cut or delete or graft or move or tree"
	for line, near := range map[string]string{
		"list": "ns or tree", "ls payments": "ns or tree", "sub create a b": sub, "sub list": sub,
		"namespace describe a": "describe or ns or set-type", "rdist list": "distribution",
	} {
		t.Run("SUB-X13 for a command as other plugins name it, such as list "+
			"or sub create, the error names the commands that do it here: "+line, func(t *testing.T) {
			words := strings.Fields(line)
			want := answer{1, "", `error: unknown command "` + words[0] + `" for "kubectl warren": did you mean ` + near + "?\n"}
			if diff := cmp.Diff(want, run(t, append([]string{"kubectl-warren"}, words...)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// refuse checks that command lines end in the error that is wanted.
func refuse(t *testing.T, cases map[string]struct{ line, want string }) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := answer{1, "", "error: " + c.want + "\n"}
			if diff := cmp.Diff(want, run(t, strings.Fields(c.line)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// SUB-X1: every command accepts kubectl's own flags behind it.
func TestConfigFlags(t *testing.T) {
	flags := []string{"--context=c", "--as=a", "--as-group=g", "--as-uid=1", "--as-user-extra=k=v", "-s=" + nowhere, "--token=t",
		"--kubeconfig=/nofile",
		"--request-timeout=1s", "--cluster=c", "--cache-dir=d", "--certificate-authority=f", "--client-certificate=f", "--client-key=f",
		"--disable-compression",
		"--insecure-skip-tls-verify", "--proxy-url=http://p", "--tls-server-name=n"}
	for _, command := range []string{"kubectl-warren tree", "kubectl-warren get pods", "kubectl-warren ns", "kubectl-warren set",
		"kubectl-warren create a", "kubectl-warren delete a", "kubectl-warren move a b", "kubectl-warren graft a b", "kubectl-warren cut a",
		"kubectl-warren describe a", "kubectl-warren set-type a root", "kubectl-warren mark a b",
		"kubectl-warren template list", "kubectl-warren template set a b", "kubectl-warren template unset a", "kubectl-warren config validate a",
		"kubectl-warren config view", "kubectl-warren trace secret/x", "kubectl-warren access", "kubectl-warren who-can",
		"kubectl-warren why", "kubectl-warren version", "kubectl-warren completion bash", "kubectl-create-lns"} {
		got := run(t, append(strings.Fields(command), append(flags, "--help")...)...)
		if got.status != 0 || got.errOut != "" {
			t.Errorf("%s: status %d, %s", command, got.status, got.errOut)
		}
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		line string
		want answer
	}{
		"client": {"kubectl-warren version --client", answer{0, "Client Version: v1.2.3\nCommit: abc\nGo Version: go1\n", ""}},
		"as YAML": {"kubectl-warren version --client -o yaml",
			answer{0, "clientVersion:\n  commit: abc\n  goVersion: go1\n  platform: os/arch\n  version: v1.2.3\n", ""}},
		"no server": {"kubectl-warren version -s " + nowhere, answer{0, "Client Version: v1.2.3\nCommit: abc\nGo Version: go1\n",
			"Warning: the server's version is unknown: can't reach the API server " + nowhere + " (dial tcp 127.0.0.1:1: connect: connection " +
				"refused): check --server, --context and the kubeconfig\n"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, run(t, strings.Fields(c.line)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	cases := map[string]struct {
		line []string
		want string
	}{
		"commands": {[]string{"kubectl_complete-warren", "tre"},
			"tree\tShow the trees of namespaces, and the templates with their instances\n:4\n"},
		"types of a namespace":  {[]string{"kubectl_complete-warren", "set-type", "x", ""}, "root\ntemplate\nnone\n:4\n"},
		"no new name":           {[]string{"kubectl_complete-warren", "create", ""}, ":4\n"},
		"formats":               {[]string{"kubectl_complete-warren", "tree", "-o", ""}, "json\nyaml\nname\nwide\n:4\n"},
		"namespaces, no server": {[]string{"kubectl_complete-warren", "tree", "-s", nowhere, ""}, ":4\n"},
		"tenants, no server":    {[]string{"kubectl_complete-warren", "access", "-s", nowhere, ""}, ":4\n"},
		"verbs": {[]string{"kubectl_complete-warren", "why", "bob", ""},
			"get\nlist\nwatch\ncreate\nupdate\npatch\ndelete\ndeletecollection\nbind\nescalate\nimpersonate\nuse\n:4\n"},
		"flags of create lns": {[]string{"kubectl_complete-create-lns", "x", "--cost"},
			"--cost-center\tCost center that pays for the tenant\n:4\n"},
		"dry runs of create lns":  {[]string{"kubectl_complete-create-lns", "x", "--dry-run", "s"}, "none\nclient\nserver\n:4\n"},
		"of create lns in warren": {[]string{"kubectl_complete-warren", "create-lns", ""}, ":4\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.line...)
			if diff := cmp.Diff(c.want, got.out); diff != "" || got.status != 0 {
				t.Errorf("status %d, -want +got:\n%s", got.status, diff)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, "kubectl-warren", "completion", shell); got.status != 0 || !strings.Contains(got.out, "kubectl-warren") {
			t.Errorf("completion %s: status %d, %d bytes", shell, got.status, len(got.out))
		}
	}
}
