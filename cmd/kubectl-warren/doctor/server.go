package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// Minor versions of Kubernetes 1: the oldest that Warren supports, and the first that has constrained impersonation by
// default.
const (
	oldest      = 34
	constrained = 36
)

// file is the operator's configuration, or why it is not known.
type file struct {
	text    string
	config  *config.OperatorConfiguration
	unknown error
}

// readConfiguration reads the file in force.
func (p Patient) readConfiguration(ctx context.Context) file {
	name, text, err := gather.ReadStoredConfig(ctx, p.API, p.Namespace)
	if err != nil {
		return file{unknown: err}
	}
	c, err := configfile.Parse(name, []byte(text))
	return file{text: text, config: c, unknown: err}
}

func (p Patient) checkServer(ctx context.Context, f file) Check {
	const name = "server"
	v, err := p.Server()
	if err != nil {
		return failOf(name, "the API server doesn't report its version: "+err.Error(), "check --server and --context")
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil || v.Major != "1" {
		return warnOf(name, fmt.Sprintf("Kubernetes %s: not a version that Warren knows", v.GitVersion),
			fmt.Sprintf("use 1.%d or later", oldest))
	}
	offers := minor >= constrained
	if f.unknown == nil && f.config.Sudo.Mode == v1alpha1.SudoConstrained {
		if metrics, err := p.Metrics(ctx); err == nil { // without the right to read them, the version has to do
			offers = offersConstrained(string(metrics))
		}
	}
	return judgeServer(v.GitVersion, minor, offers, f)
}

// gateOn is the line by which the metrics of an API server show that it has constrained impersonation, whatever its
// version.
var gateOn = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="ConstrainedImpersonation",[^}]*\} 1$`)

func offersConstrained(metrics string) bool { return gateOn.MatchString(metrics) }

// judgeServer judges the API server's version. offers reports whether the API server has constrained impersonation.
func judgeServer(version string, minor int, offers bool, f file) Check {
	const name = "server"
	switch {
	case minor < oldest:
		return failOf(name, "Kubernetes "+version+" is too old for Warren", fmt.Sprintf("upgrade to 1.%d or later", oldest))
	case f.unknown != nil:
		return warnOf(name, fmt.Sprintf("Kubernetes %s; the operator's configuration is not known: %v", version, f.unknown),
			f.stepToKnow())
	case !offers && f.config.Sudo.Mode == v1alpha1.SudoConstrained:
		return failOf(name, fmt.Sprintf("Kubernetes %s has no constrained impersonation here, so with sudo.mode Constrained nobody can use sudo",
			version), fmt.Sprintf("set sudo.mode to Legacy, or use Kubernetes 1.%d with feature gate ConstrainedImpersonation", constrained))
	}
	return passOf(name, fmt.Sprintf("Kubernetes %s, sudo.mode %s", version, f.config.Sudo.Mode))
}
