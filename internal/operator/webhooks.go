package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/warren-tenancy/warren/controllers/certificate"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/webhooks"
)

// Where the certificate of the webhooks comes from.
const (
	certificatesSelf     = "self"
	certificatesExternal = "external"
)

// WebhookOptions are the flags of the webhook server.
type WebhookOptions struct {
	Enabled bool
	Port    int
	// Certificates is self or, with a certificate in Dir, external.
	Certificates string
	// Dir holds the external certificate.
	Dir string
	// ClientCA is a file of CAs; with "", the webhooks answer every client that reaches the port. ClientNames are the common names, separated
	// by commas, of the client certificates that are accepted; empty means all that ClientCA has signed.
	ClientCA, ClientNames string

	serving *certificate.Serving
	files   *certwatcher.CertWatcher
}

func (o *WebhookOptions) bindFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.Enabled, "webhooks", true, "serve the admission webhooks; false: policies and reconcilers alone")
	fs.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "where the webhooks are served")
	fs.StringVar(&o.Certificates, "webhook-certs", certificatesSelf,
		"self: the operator makes and rotates the webhooks' certificate; external: it reads --webhook-cert-dir")
	fs.StringVar(&o.Dir, "webhook-cert-dir", "", "the folder of tls.crt and tls.key, for --webhook-certs=external")
	fs.StringVar(&o.ClientCA, "webhook-client-ca", "",
		"a file of CAs: the webhooks answer only clients with a certificate that one of them has signed; empty: everybody who reaches the port")
	fs.StringVar(&o.ClientNames, "webhook-client-names", "", "with --webhook-client-ca, the common names that are answered, separated by "+
		"commas; empty: all")
}

func (o *WebhookOptions) validate() error {
	switch {
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("--webhook-port %d: must be between 1 and 65535", o.Port)
	case o.Certificates != certificatesSelf && o.Certificates != certificatesExternal:
		return fmt.Errorf("--webhook-certs %q: must be self or external", o.Certificates)
	case o.Certificates == certificatesExternal && o.Dir == "":
		return errors.New("--webhook-certs=external needs --webhook-cert-dir, the folder of tls.crt and tls.key")
	case o.Certificates == certificatesSelf && o.Dir != "":
		return fmt.Errorf("--webhook-cert-dir %q: only with --webhook-certs=external", o.Dir)
	case o.ClientNames != "" && o.ClientCA == "":
		return fmt.Errorf("--webhook-client-names %q: only with --webhook-client-ca", o.ClientNames)
	}
	return nil
}

// makeServer makes the webhook server. The operator's own certificate may be made later, while the server runs; an external certificate
// must exist already.
func (o *WebhookOptions) makeServer() (webhook.Server, error) {
	if !o.Enabled {
		return webhook.NewServer(webhook.Options{Port: -1}), nil
	}
	var get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	if o.Certificates == certificatesExternal {
		var err error
		o.files, err = certwatcher.New(filepath.Join(o.Dir, "tls.crt"), filepath.Join(o.Dir, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("--webhook-cert-dir %q holds no certificate to serve: %w", o.Dir, err)
		}
		certificate.Watch(o.files)
		get = o.files.GetCertificate
	} else {
		o.serving = &certificate.Serving{}
		get = o.serving.GetCertificate
	}
	options := []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		c.GetCertificate = get
	}}
	if o.ClientCA != "" {
		clients, err := newClientCA(o.ClientCA, o.clientNames())
		if err != nil {
			return nil, err
		}
		options = append(options, clients.requireCertificates)
	}
	return &drainingServer{Server: webhook.NewServer(webhook.Options{Port: o.Port, TLSOpts: options})}, nil
}

func (o *WebhookOptions) clientNames() []string {
	return strings.FieldsFunc(o.ClientNames, func(r rune) bool { return r == ',' })
}

// addWebhooks registers the handlers, and has the server's certificate made or watched.
func (s *setup) addWebhooks(ctx context.Context, o WebhookOptions) error {
	if !o.Enabled {
		return s.mgr.Add(manager.RunnableFunc(s.warnOfTrust))
	}
	if err := webhooks.SetupWithManager(s.mgr, webhooks.Options{
		View: s.view, Config: s.config, Namespace: s.namespace, MakeRoom: s.budgets.MakeRoom,
	}); err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	if o.files != nil {
		return errors.Join(s.mgr.Add(o.files), s.mgr.AddReadyzCheck("webhooks", s.mgr.GetWebhookServer().StartedChecker()))
	}
	return certificate.SetupWithManager(ctx, s.mgr, certificate.Options{
		Namespace: s.namespace, Serving: o.serving, Events: s.events, Timing: s.timing.Certificate,
	})
}

// warnOfTrust logs a warning if the operator would carry out every HierarchyConfiguration although nothing checks the rights of its author:
// neither the webhooks nor policy hierarchy-authority.
func (s *setup) warnOfTrust(ctx context.Context) error {
	const policy = manifests.Prefix + "hierarchy-authority"
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"))
	if err := s.mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: policy}, binding); err != nil {
		s.mgr.GetLogger().Info("the webhooks are off, and the binding of policy "+policy+" is missing or can't be read: without that "+
			"policy, whoever may write HierarchyConfigurations may place a namespace below any other; install component hierarchy-authority",
			"answer", err.Error())
	}
	return nil
}
