// Command controlplane builds etcd, the API server, the controller manager and kubectl from Go modules into a cache
// outside the clone, and prints the folder. If all of them are there already, it is instant and prints nothing else;
// the first build takes minutes and shows its progress. A binary of the right version in KUBEBUILDER_ASSETS or in the
// PATH is copied instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

func main() {
	version := flag.String("version", cache.Version(), "Kubernetes version: "+strings.Join(cache.Versions(), ", "))
	components := flag.String("components", "",
		"more components, separated by commas: "+strings.Join(cache.NodeComponents(), ", "))
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := ensureBinaries(ctx, *version, *components)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane: "+err.Error())
		os.Exit(1)
	}
	fmt.Println(dir)
}

// ensureBinaries returns the folder that holds all components, building those that are missing.
func ensureBinaries(ctx context.Context, version, more string) (string, error) {
	if err := cache.Validate(version); err != nil {
		return "", err
	}
	components, err := wantedComponents(more)
	if err != nil {
		return "", err
	}
	dir, err := cache.Dir(version)
	if err != nil {
		return "", err
	}
	missing := cache.Missing(dir, components)
	if len(missing) == 0 {
		return dir, nil
	}
	if os.Getenv(cache.DirEnv) != "" {
		return "", fmt.Errorf("%s=%s lacks %s: put them there, or unset it to have them built",
			cache.DirEnv, dir, strings.Join(missing, ", "))
	}
	return dir, buildMissing(ctx, version, dir, components)
}

func wantedComponents(more string) ([]string, error) {
	components := cache.Components()
	for name := range strings.SplitSeq(more, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" || slices.Contains(components, name):
		case slices.Contains(cache.NodeComponents(), name):
			components = append(components, name)
		default:
			return nil, fmt.Errorf("unknown component %q: choose among %s",
				name, strings.Join(append(cache.Components(), cache.NodeComponents()...), ", "))
		}
	}
	return components, nil
}
