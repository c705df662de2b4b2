package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// Minor versions of Kubernetes 1: the oldest that Warren supports, and the first that has constrained impersonation.
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

func (p Patient) checkServer(f file) Check {
	const name = "server"
	v, err := p.Server()
	if err != nil {
		return failure(name, "the API server doesn't report its version: "+err.Error(), "check --server and --context")
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil || v.Major != "1" {
		return warning(name, fmt.Sprintf("Kubernetes %s: not a version that Warren knows", v.GitVersion),
			fmt.Sprintf("use 1.%d or later", oldest))
	}
	return judgeServer(v.GitVersion, minor, f)
}

func judgeServer(version string, minor int, f file) Check {
	const name = "server"
	switch {
	case minor < oldest:
		return failure(name, "Kubernetes "+version+" is too old for Warren", fmt.Sprintf("upgrade to 1.%d or later", oldest))
	case f.unknown != nil:
		return warning(name, fmt.Sprintf("Kubernetes %s; the operator's configuration is not known: %v", version, f.unknown),
			f.stepToKnow())
	case minor < constrained && f.config.Sudo.Mode == v1alpha1.SudoConstrained:
		return failure(name, fmt.Sprintf("Kubernetes %s can't do sudo.mode Constrained, which the configuration asks for: no sudo is granted",
			version),
			fmt.Sprintf("upgrade to 1.%d, or set sudo.mode to Legacy or Auto", constrained))
	}
	return ok(name, fmt.Sprintf("Kubernetes %s, sudo.mode %s", version, f.config.Sudo.Mode))
}
