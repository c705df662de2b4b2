// Package sudo_test runs the cases of kubectl sudo in docs/behaviour/access.md: the real plugin under the real kubectl, with real users,
// and the API server's audit log as the witness. The cases share one World with the tenants of the specification. A case that reads the
// audit log has a user of its own, because cases run at once.
package sudo_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

var world words.Cluster

// sudoers of payments and shop, one for each case that looks at what bob did. walt also sees every namespace.
var sudoers = []string{"bob", "p01", "p02", "p06", "p08", "walt"}

func TestSudo(t *testing.T) { suite.Run(t, "kubectl sudo") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	users := map[string][]string{"vera": nil, "conny": nil}
	for _, name := range sudoers {
		users[name] = nil
	}
	w, err := devcluster.Start(ctx, devcluster.Options{ControlPlane: controlplane.Options{Users: users}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	w.Plugins, err = devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	world.World = w
	makeTenants(ctx)
	return w.Bytes()
}, func(data []byte) {
	var err error
	world.World, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

// makeTenants makes the tenants of the specification: payments with pay-web, and shop. lonely is a namespace of no tenant.
func makeTenants(ctx context.Context) {
	GinkgoHelper()
	world.Create(ctx,
		build.Namespace("lonely"), build.Namespace("ci"),
		build.Tenant("payments").Users("alice").UserSubjects(build.Group("pay-devs")).Managers("mia").
			Sudoers(sudoers...).SudoerSubjects(build.Group("pay-oncall"), build.ServiceAccount("ci", "deployer")).Object(),
		build.Tenant("shop").Users("dave", "vera").Managers("mia").ManagerSubjects(build.Group("shop-leads")).Sudoers(sudoers...).Object())
	world.Ready(ctx, build.Tenant("payments").Object(), build.Tenant("shop").Object())
	world.Create(ctx, build.SubNamespace("payments", "pay-web"))
	for _, binding := range []string{"warren:sudoers", "warren:users"} {
		world.Exists(ctx, build.RoleBinding("pay-web", binding, ""))
	}
	for _, name := range sudoers { // the API server learns of bindings a moment after they are there
		granted(ctx, world.Sudo(name, "payments"), "pay-web")
		granted(ctx, world.Sudo(name, "shop"), "shop")
	}
	granted(ctx, world.As("alice"), "pay-web")
}

// granted waits until somebody may list pods in a namespace.
func granted(ctx context.Context, who client.Client, namespace string) {
	GinkgoHelper()
	Eventually(func() error { return who.List(ctx, &corev1.PodList{}, client.InNamespace(namespace)) }).WithContext(ctx).Should(Succeed())
}

// line is a command line of a user.
type line struct {
	user, stdin string
	kubeconfig  string   // empty: the user's own
	env         []string // added to the usual environment
}

// answer is the result of a command line.
type answer struct {
	stdout, stderr string
	code           int
	state          *os.ProcessState
}

func as(user string, env ...string) line { return line{user: user, env: env} }

// sudo runs kubectl sudo.
func (l line) sudo(ctx context.Context, args ...string) answer {
	GinkgoHelper()
	return l.kubectl(ctx, append([]string{"sudo"}, args...)...)
}

func (l line) kubectl(ctx context.Context, args ...string) answer {
	GinkgoHelper()
	var stdout, stderr strings.Builder
	cmd := l.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(l.stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	Expect(err == nil || errors.As(err, &exit)).To(BeTrue(), "%v", err)
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), cmd.ProcessState}
}

func (l line) command(ctx context.Context, args ...string) *exec.Cmd {
	kubeconfig := l.kubeconfig
	if kubeconfig == "" {
		kubeconfig = world.Kubeconfig(l.user)
	}
	k := devcluster.Kubectl{Path: world.KubectlPath, Plugins: world.Plugins, Home: filepath.Join(world.Dir, "home")}
	cmd := k.Command(ctx, kubeconfig, l.user, args...)
	cmd.Env = append(cmd.Env, l.env...)
	return cmd
}

// kubeconfigIn writes a user's kubeconfig whose context is in a namespace.
func kubeconfigIn(user, namespace string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(world.Kubeconfig(user))
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// script writes a program for the variable KUBECTL or the like, and returns its path.
func script(text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "script")
	Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700)).To(Succeed())
	return path
}

// recorder is a kubectl that writes down its arguments, and runs the real one.
func recorder() (env string, recorded func() []string) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "arguments")
	text := `for a in "$@"; do printf '%s\n' "$a"; done > ` + path + "\nexec " + world.KubectlPath + ` "$@"`
	return "KUBECTL=" + script(text), func() []string {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		Expect(err).NotTo(HaveOccurred())
		return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	}
}

func asJSON(text string) map[string]any {
	GinkgoHelper()
	var value map[string]any
	Expect(json.Unmarshal([]byte(text), &value)).To(Succeed(), text)
	return value
}
