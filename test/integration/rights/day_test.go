package rights_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// day is a run of the operator, with the rights of a deployed one, in which all kinds of work occur: a tenant, a sub-namespace, a copy, a
// child to be reported, a tenant that is being deleted, a client that reads the metrics.
type day struct {
	w       *devcluster.World
	tenant  string
	metrics string // URL
	since   audit.Position
	process *process.Process
}

func startDay(ctx context.Context, w *devcluster.World, tenant string) *day {
	GinkgoHelper()
	d := &day{w: w, tenant: tenant}
	going := build.Tenant(tenant + "-going").Object()
	going.Finalizers = []string{v1alpha1.FinalizerLNamespace}
	for _, object := range []client.Object{
		build.Template(tenant + "-template"),
		build.Tenant(tenant).Template(tenant + "-template").Users("alice").Managers("mia").Sudoers("bob").Object(), going,
		build.Root(tenant + "-root"), build.SubNamespace(tenant+"-root", tenant+"-sub"), build.Child(tenant+"-placed", tenant+"-root"),
		build.Source(build.Secret(tenant+"-root", "s", "v"), v1alpha1.ModeUpdate),
	} {
		Expect(w.Admin().Create(ctx, object)).To(Succeed())
	}
	Expect(w.Admin().Delete(ctx, going)).To(Succeed())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "warren"}}
	Expect(client.IgnoreNotFound(w.Admin().Delete(ctx, lease))).To(Succeed())
	var err error
	d.since, err = w.Mark(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(process.OnFreePort(func(port int) (*process.Process, error) { return d.start(ctx, port) })).To(Succeed())
	return d
}

func (d *day) start(ctx context.Context, port int) (*process.Process, error) {
	health, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	webhooks, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	address, healthAddress := "127.0.0.1:"+strconv.Itoa(port), "127.0.0.1:"+strconv.Itoa(health)
	d.metrics = "https://" + address + "/metrics"
	d.process = process.New(manager, []string{
		"--kubeconfig=" + d.w.Kubeconfig(controlplane.Operator), "--leader-elect",
		"--metrics-bind-address=" + address, "--health-probe-bind-address=" + healthAddress,
		"--webhook-port=" + strconv.Itoa(webhooks), // which nobody calls here: the World has no webhook configurations
	}, nil, filepath.Join(d.w.Dir, d.tenant+".log"))
	err = d.process.StartReady(ctx, process.HTTPOK(nil, "http://"+healthAddress+"/healthz"))
	if errors.Is(err, process.ErrPortTaken) {
		return d.process, err
	}
	return d.process, nil // an operator that ends because of a refusal shows that something was refused
}

func (d *day) end(ctx context.Context) {
	GinkgoHelper()
	AddReportEntry("log of the operator", ReportEntryVisibilityFailureOrVerbose, d.process.LogTail(30))
	Expect(d.process.Kill()).To(Succeed())
	for _, object := range []client.Object{build.Tenant(d.tenant).Object(), build.SubNamespace(d.tenant+"-root", d.tenant+"-sub")} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		Expect(d.w.Admin().Patch(ctx, object, patch)).To(Succeed())
		Expect(d.w.Admin().Delete(ctx, object)).To(Succeed())
	}
}

// done returns an error that names work that is not done yet.
func (d *day) done(ctx context.Context) error {
	tenant := build.Tenant(d.tenant).Object()
	if err := d.w.Admin().Get(ctx, client.ObjectKeyFromObject(tenant), tenant); err != nil {
		return err
	}
	if c := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("tenant %s is not ready: %+v", d.tenant, c)
	}
	going := build.Tenant(d.tenant + "-going").Object()
	if err := d.w.Admin().Get(ctx, client.ObjectKeyFromObject(going), going); client.IgnoreNotFound(err) != nil || err == nil {
		return fmt.Errorf("tenant %s is still there: %w", going.Name, err)
	}
	copied := build.Secret(d.tenant+"-sub", "s", "")
	if err := d.w.Admin().Get(ctx, client.ObjectKeyFromObject(copied), copied); err != nil {
		return err
	}
	reported := build.Hierarchy(d.tenant + "-root")
	if err := d.w.Admin().Get(ctx, client.ObjectKeyFromObject(reported), reported); err != nil {
		return err
	}
	return d.scrape(ctx)
}

// scrape reads the metrics as a cluster admin.
func (d *day) scrape(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.metrics, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+d.w.Config(controlplane.Admin).BearerToken)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the metrics answer %s", answer.Status)
	}
	return nil
}

// refused are the operator's requests that were answered 403, as verb and resource.
func (d *day) refused(ctx context.Context) ([]string, error) {
	_ = d.scrape(ctx) // the operator asks the API server who the client is; without that right, it answers 500
	requests, err := d.w.Requests(ctx, d.since)
	var refused []string
	for _, r := range requests {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if r.User == controlplane.Operator && r.Code == http.StatusForbidden && !slices.Contains(refused, what) {
			refused = append(refused, what)
		}
	}
	return refused, err
}
