package devcluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs the real kubectl as a user, with the plugins of the clone's bin in its PATH. It keeps its own caches and
// never sees the configuration of the person at the keyboard.
type Kubectl struct {
	// Path of kubectl.
	Path string
	// Plugins is the folder of the plugins.
	Plugins string
	// Home is where kubectl keeps its caches.
	Home string
}

// Run runs kubectl with a kubeconfig. $USER is the user's name, because the command in `status.sudo.command` has $USER in it. The code is
// -1 if kubectl didn't run at all; stderr then says why.
func (k Kubectl) Run(ctx context.Context, kubeconfig, user, stdin string, args ...string) (stdout, stderr string, code int) {
	var out, problems strings.Builder
	cmd := k.Command(ctx, kubeconfig, user, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		code = exit.ExitCode()
	default:
		code = -1
		problems.WriteString(err.Error())
	}
	return out.String(), problems.String(), code
}

// Command returns the command that Run runs.
func (k Kubectl) Command(ctx context.Context, kubeconfig, user string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.Path, args...)
	path := []string{k.Plugins, filepath.Dir(k.Path), os.Getenv("PATH")}
	cmd.Env = []string{
		"PATH=" + strings.Join(path, string(os.PathListSeparator)),
		"HOME=" + k.Home, "KUBECACHEDIR=" + filepath.Join(k.Home, "cache"), "KUBERC=off",
		"KUBECONFIG=" + kubeconfig, "USER=" + user, "TMPDIR=" + k.Home,
	}
	return cmd
}
