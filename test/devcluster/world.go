// Package devcluster runs a real control plane on loopback for tests, benchmarks, the demo and the playground, with our manifests
// installed, the operator as a process under its own service account, and a client for each user.
//
// A suite whose cases run in several processes starts one World in the first of them and connects from all:
//
//	var world *devcluster.World
//
//	var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
//		w, err := devcluster.Start(ctx, devcluster.Options{})
//		Expect(err).NotTo(HaveOccurred())
//		DeferCleanup(w.Stop)
//		return w.Bytes()
//	}, func(data []byte) {
//		var err error
//		world, err = devcluster.Connect(data)
//		Expect(err).NotTo(HaveOccurred())
//	})
//
// The cases share it, each with tenants of its own names. A case that stops something starts a World of its own.
package devcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/cache"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/facts"
)

// EmulatedVersionEnv is the environment variable that has all API servers behave as an older minor version, such as 1.35.
const EmulatedVersionEnv = "WARREN_EMULATED_VERSION"

// MinorVersion is the minor version of Kubernetes that API servers behave as where Options name no other, such as 1.35.
func MinorVersion() *version.Version {
	text := os.Getenv(EmulatedVersionEnv)
	if text == "" {
		text = cache.Version()
	}
	v := version.MustParseGeneric(text)
	return version.MajorMinor(v.Major(), v.Minor())
}

// Options say how a World differs from the usual one: overlay standard without webhooks, an audit log, one operator, all
// policies in force. The policies and the operator's rights fit the kinds of its configuration.
type Options struct {
	// ControlPlane's options. The hook BeforeControllers runs when our CRDs are there; Audit is always on. If EmulatedVersion is empty, the
	// version in EmulatedVersionEnv counts.
	ControlPlane controlplane.Options
	// Overlay is the kustomization that is applied; empty means config/overlays/standard, or loopback with Webhooks.
	Overlay string
	// Components are added to the overlay, such as config/components/open-access.
	Components []string
	// Webhooks lets the operator serve webhooks and the API server call them. Without them, reconcilers and policies work alone, as they must
	// be able to.
	Webhooks bool
	// Operator's options; Kubeconfig and Dir are filled in, and Config is that of the overlay unless it is given.
	Operator OperatorOptions
	// WithoutOperator starts no operator; StartOperator does so later.
	WithoutOperator bool
	// PlacesFreely leaves out component strict-placement, as an overlay other than ours may: a namespace joins a tree without a cluster
	// admin's mark.
	PlacesFreely bool
	// WithoutPolicies leaves out the admission policies, for cases about a cluster without them.
	WithoutPolicies bool
}

// World is one control plane with our manifests and an operator.
type World struct {
	controlplane.Access
	// Plugins is the folder of our kubectl plugins.
	Plugins string
	// OperatorConfig is the text of the configuration file that the overlay deploys.
	OperatorConfig string
	// WebhookPort is where the API server calls the operator's webhooks, 0 without Webhooks.
	WebhookPort int
	// Operator is the operator that runs, nil if there is none. A process that only connected can read it, but not stop it.
	Operator *Operator

	// ControlPlane is nil in a process that only connected.
	ControlPlane *controlplane.ControlPlane `json:"-"`
	options      Options
	clients      *clients
}

// Start starts a World. When it fails, nothing is left behind.
func Start(ctx context.Context, options Options) (*World, error) {
	begun := time.Now()
	options = options.withDefaults()
	root, err := Root()
	if err != nil {
		return nil, err
	}
	rendered, err := RenderWith(options.Overlay, options.Components...)
	if err != nil {
		return nil, err
	}
	manifests, err := options.fitManifests(rendered)
	if err != nil {
		return nil, err
	}
	options.ControlPlane.Data, err = options.furnishedData(ctx, manifests)
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, options.ControlPlane)
	if err != nil {
		return nil, err
	}
	w := &World{
		Access: cp.Access, Plugins: filepath.Join(root, "bin"), OperatorConfig: rendered.Configuration(), ControlPlane: cp, options: options,
	}
	if err := w.addServices(ctx, rendered); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	facts.Write(facts.Record{Kind: facts.World, Name: filepath.Base(os.Args[0]), CPU: cp.CPU().Seconds(), Wall: time.Since(begun).Seconds()})
	return w, nil
}

func (o Options) withDefaults() Options {
	switch {
	case o.Overlay != "":
	case o.Webhooks:
		o.Overlay = "config/overlays/loopback"
	default:
		o.Overlay = "config/overlays/standard"
	}
	o.ControlPlane.Audit = true
	o.ControlPlane.Version = cmp.Or(o.ControlPlane.Version, cache.Version())
	if o.ControlPlane.EmulatedVersion == "" {
		o.ControlPlane.EmulatedVersion = os.Getenv(EmulatedVersionEnv)
	}
	return o
}

// fitManifests returns the manifests as the Options ask, without webhooks, which have a port of their own in each World.
func (o Options) fitManifests(rendered Manifests) (Manifests, error) {
	configuration := rendered.Configuration()
	switch {
	case o.Operator.Config != "":
		configuration = o.Operator.Config
	case o.Operator.ConfigFile != "":
		text, err := os.ReadFile(o.Operator.ConfigFile)
		if err != nil {
			return nil, err
		}
		configuration = string(text)
	}
	manifests, err := rendered.where(func(u *unstructured.Unstructured) bool {
		leftOut := callsWebhooks(u) || o.PlacesFreely && u.GetName() == "warren-strict-placement"
		return !leftOut
	}).withKindsOf(configuration)
	if err != nil || !o.WithoutPolicies {
		return manifests, err
	}
	return manifests.withoutPolicies(), nil
}

// addServices adds to a World what etcd's data don't have: clients, webhooks and an operator.
func (w *World) addServices(ctx context.Context, rendered Manifests) error {
	if err := waitUntilServed(ctx, w.ControlPlane, rendered); err != nil {
		return err
	}
	if err := w.connectClients(); err != nil {
		return err
	}
	if w.options.Webhooks {
		if err := w.installWebhooks(ctx, rendered.where(callsWebhooks)); err != nil {
			return err
		}
	}
	if w.options.WithoutOperator {
		return nil
	}
	_, err := w.StartOperator(ctx)
	return err
}

// StartOperator starts the operator of a World that has none yet.
func (w *World) StartOperator(ctx context.Context) (*Operator, error) {
	options := w.options.Operator
	options.Kubeconfig = w.Kubeconfig(controlplane.Operator)
	if options.Dir == "" {
		options.Dir = filepath.Join(w.Dir, "operator")
	}
	if options.Config == "" && options.ConfigFile == "" {
		options.Config = w.OperatorConfig
	}
	o, err := StartOperator(ctx, options)
	if err != nil {
		return nil, err
	}
	w.Operator = o
	if w.options.Webhooks {
		if err := w.waitForWebhooks(ctx); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// RecordConfig records the deployed configuration file as the file in force, as an operator would, for a World in which none runs.
func (w *World) RecordConfig(ctx context.Context) error {
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
	if err := w.Admin().Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
		return err
	}
	record.Data = map[string]string{"config.yaml": w.OperatorConfig}
	return w.Admin().Update(ctx, record)
}

// Stop ends the operator, then the control plane, and removes all files. An operator that ends badly, or whose log has a
// data race or a panic, is an error. A process that only connected stops nothing.
func (w *World) Stop() error {
	if w.ControlPlane == nil {
		return nil
	}
	var err error
	if w.Operator != nil {
		err = w.Operator.endProcess()
	}
	return errors.Join(err, w.ControlPlane.Stop())
}

// Bytes describes the World for Connect in another process.
func (w *World) Bytes() []byte {
	data, err := json.Marshal(w)
	if err != nil { // it holds nothing but strings
		panic(fmt.Sprintf("describing the world: %v", err))
	}
	return data
}

// Connect returns a World that another process started and described by Bytes.
func Connect(data []byte) (*World, error) {
	w := &World{}
	if err := json.Unmarshal(data, w); err != nil {
		return nil, fmt.Errorf("connecting to the world of another process: %w", err)
	}
	return w, w.connectClients()
}

// Kubectl runs kubectl as a user, with our plugins. The code is kubectl's exit code, -1 if it didn't run.
func (w *World) Kubectl(ctx context.Context, user string, args ...string) (stdout, stderr string, code int) {
	return w.KubectlWith(ctx, user, "", args...)
}

// KubectlWith runs kubectl as a user with some input, for `apply -f -`.
func (w *World) KubectlWith(ctx context.Context, user, stdin string, args ...string) (stdout, stderr string, code int) {
	k := Kubectl{Path: w.KubectlPath, Plugins: w.Plugins, Home: filepath.Join(w.Dir, "home")}
	return k.Run(ctx, w.Kubeconfig(user), user, stdin, args...)
}
