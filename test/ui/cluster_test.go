package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// patience is how long something may take on a busy machine; it is no limit of the specification.
const patience = time.Minute

// cluster is the control plane, with the operator, and the browser that all tests of pages use.
type cluster struct {
	*devcluster.World
	chromium *browser.Browser
}

// teams are the tenants that each belong to one test, with people of their own: NAME-alice uses it, NAME-mia manages it, NAME-bob is its sudoer.
var teams = []string{"live", "many", "tabs", "page", "asked", "reach", "uses", "lost", "away", "ends", "alone", "quiet", "grow", "people", "raise", "look", "keys", "secret", "hostile", "outage", "asks"}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	chromium := browser.Start(t)
	plugins, err := devcluster.BuildPlugins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users := map[string][]string{"nora": nil}
	for _, team := range teams {
		for _, name := range []string{"alice", "mia", "bob"} {
			users[team+"-"+name] = nil
		}
	}
	world, err := devcluster.Start(t.Context(), devcluster.Options{ControlPlane: controlplane.Options{Users: users}, PlacesFreely: true, Webhooks: true,
		Components: []string{"config/components/requests"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	world.Plugins = plugins
	return &cluster{world, chromium}
}

// create makes objects as a cluster admin.
func (c *cluster) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Admin().Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// eventually waits until a function returns no error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	eventuallyWithin(t, patience, what, try)
}

func eventuallyWithin(t testing.TB, within time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// newTeam makes a tenant with its people, NAME-web below it and NAME-db below that.
func (c *cluster) newTeam(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(teams, name) {
		t.Fatalf("add team %s to teams", name)
	}
	c.newTenant(t, build.Tenant(name).Users(name+"-alice").Managers(name+"-mia").Sudoers(name+"-bob").Object())
	c.grow(t, name, name+"-web")
	c.grow(t, name+"-web", name+"-db")
}

// newTenant makes a tenant and waits until it is ready.
func (c *cluster) newTenant(t testing.TB, tenant *v1alpha1.LNamespace) {
	t.Helper()
	c.create(t, tenant)
	eventually(t, "tenant "+tenant.Name, func() error {
		if err := c.Admin().Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		if ready := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
			return errors.New("it is not ready")
		}
		return nil
	})
	c.waitForUsers(t, tenant.Name)
}

// grow makes a sub-namespace and waits until the tenant's users have their rights there.
func (c *cluster) grow(t testing.TB, parent, name string, labels ...string) {
	t.Helper()
	c.create(t, build.SubNamespace(parent, name, labels...))
	c.waitForUsers(t, name)
}

func (c *cluster) waitForUsers(t testing.TB, namespace string) {
	t.Helper()
	for _, binding := range []string{"warren:sudoers", "warren:users"} {
		object := build.RoleBinding(namespace, binding, "")
		eventually(t, binding+" in "+namespace, func() error { return c.Admin().Get(t.Context(), client.ObjectKeyFromObject(object), object) })
	}
}

// deleteSub deletes a SubNamespace, and waits until its namespace is gone.
func (c *cluster) deleteSub(t testing.TB, parent, name string) {
	t.Helper()
	if err := c.Admin().Delete(t.Context(), build.SubNamespace(parent, name)); err != nil {
		t.Fatal(err)
	}
	c.waitForEnd(t, name)
}

func (c *cluster) waitForEnd(t testing.TB, namespace string) {
	t.Helper()
	eventuallyWithin(t, 3*patience, "the end of "+namespace, func() error { // Kubernetes empties it, kind by kind
		if err := c.Admin().Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}); err != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it is still there")
	})
}

// kubectl runs kubectl as a user, and returns what it prints. It fails where kubectl does.
func (c *cluster) kubectl(t testing.TB, user string, args ...string) string {
	t.Helper()
	out, problems, code := c.Kubectl(t.Context(), user, args...)
	if code != 0 {
		t.Fatalf("kubectl %s: %s%s", strings.Join(args, " "), out, problems)
	}
	return out
}

// shell runs a command line of a page by sh, as a user, and returns what it prints.
func (c *cluster) shell(t testing.TB, user, command string) string {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Env = []string{
		"PATH=" + strings.Join([]string{c.Plugins, filepath.Dir(c.KubectlPath), os.Getenv("PATH")}, ":"),
		"HOME=" + home, "KUBECONFIG=" + c.Kubeconfig(user), "USER=" + user, "KUBERC=off",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// decode returns a JSON text as T.
func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func (c *cluster) namespaceNames(t testing.TB) []string {
	t.Helper()
	all := &corev1.NamespaceList{}
	if err := c.Admin().List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, namespace := range all.Items {
		names[namespace.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

type bodyKey struct{}

func withBody(ctx context.Context, body string) context.Context {
	return context.WithValue(ctx, bodyKey{}, body)
}

func bodyOf(ctx context.Context) string {
	body, _ := ctx.Value(bodyKey{}).(string)
	return body
}
