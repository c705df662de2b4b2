// New-user makes a test user on the current cluster: a client certificate that the cluster signs, in a kubeconfig of its
// own. The user has only the rights of every authenticated user and of the given groups, until an LNamespace or a binding names the user.
//
//	go run ./hack/new-user [-o FILE] [-expires 24h] [-kubeconfig FILE] [-context NAME] NAME [GROUP...]
//
// It needs the rights of a cluster admin: to create, approve and delete a CertificateSigningRequest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const usage = "go run ./hack/new-user [FLAG...] NAME [GROUP...]"

// run makes the user that the arguments describe, and prints what to try next.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("new-user", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints an error; the flag set would print it a second time
	file := flags.String("o", "", "the kubeconfig to write (default NAME.kubeconfig)")
	expires := flags.Duration("expires", 24*time.Hour, "how long the certificate is good, at least 10m; the cluster may make it shorter")
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "the cluster admin's kubeconfig (default kubectl's)")
	overrides := &clientcmd.ConfigOverrides{}
	flags.StringVar(&overrides.CurrentContext, "context", "", "a context of it (default its current one)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "Usage: "+usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w: %s", err, usage)
	case flags.NArg() == 0:
		return errors.New("NAME is missing: " + usage)
	}
	name, groups := flags.Arg(0), flags.Args()[1:]
	if *file == "" {
		*file = strings.ReplaceAll(name, "/", "_") + ".kubeconfig"
	}
	if err := errors.Join(checkName(name, groups, *expires), checkAbsent(*file)); err != nil {
		return err
	}

	admin := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := admin.ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the cluster admin's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	certificate, key, err := signCertificate(ctx, client, name, groups, *expires)
	if err != nil {
		return err
	}
	if err := writeKubeconfig(admin, overrides.CurrentContext, *file, name, certificate, key); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s; try: kubectl --kubeconfig %s auth whoami\n", *file, *file)
	return nil
}

// checkName refuses names and groups with a meaning in the cluster or in Warren: they would have rights by their names alone. It refuses
// a certificate that expires sooner than the cluster allows, too.
func checkName(name string, groups []string, expires time.Duration) error {
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return fmt.Errorf("NAME %q must not be empty, or begin or end with white space", name)
	case strings.HasPrefix(name, "system:"), strings.HasPrefix(name, "warren:"):
		return fmt.Errorf("NAME %q is reserved: names that start with system: or warren: are not for people", name)
	case expires < 10*time.Minute:
		return fmt.Errorf("-expires %s is too short: the cluster signs for 10m at least", expires)
	}
	for _, group := range groups {
		switch {
		case group == "":
			return errors.New("a GROUP is empty: leave it out, or name a group")
		case strings.HasPrefix(group, "system:"):
			return fmt.Errorf("GROUP %q is reserved: groups that start with system: are the cluster's own", group)
		case strings.HasSuffix(group, "-sudoers"):
			return fmt.Errorf("GROUP %q is reserved: its members would have the rights of sudo without kubectl sudo", group)
		}
	}
	return nil
}

// checkAbsent refuses a file that exists, for it may be somebody's only key.
func checkAbsent(file string) error {
	switch _, err := os.Lstat(file); {
	case err == nil:
		return fmt.Errorf("%s exists: remove it, or choose another file with -o", file)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return err
	}
}
