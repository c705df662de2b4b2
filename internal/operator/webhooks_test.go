package operator_test

import (
	"flag"
	"strings"
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/operator"
)

// Every wrong flag is reported in one sentence, before any request is sent.
func TestWebhookFlags(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--webhook-port=0", "--webhook-port 0: must be between 1 and 65535"},
		{"--webhook-port=70000", "--webhook-port 70000: must be between 1 and 65535"},
		{"--webhook-certs=both", `--webhook-certs "both": must be self or external`},
		{"--webhook-certs=external", "--webhook-certs=external needs --webhook-cert-dir, the folder of tls.crt and tls.key"},
		{"--webhook-cert-dir=/certs", `--webhook-cert-dir "/certs": only with --webhook-certs=external`},
	} {
		var o operator.Options
		flags := flag.NewFlagSet("manager", flag.ContinueOnError)
		o.BindFlags(flags)
		if err := flags.Parse([]string{c.flags, "--metrics-bind-address=0", "--health-probe-bind-address=0"}); err != nil {
			t.Fatal(err)
		}
		_, err := operator.NewManager(t.Context(), &o, &config.OperatorConfiguration{}, "test")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", c.flags, err, c.want)
		}
	}
}
