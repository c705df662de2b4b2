package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// server is an API server.
type server struct {
	version string // in full: v1.36.3
	minor   *version.Version
}

// writeList writes the rights that the ClusterRole has now as a list. A list that has the same rights already is not
// changed, so it keeps its review.
func writeList(ctx context.Context, inv *invocation.Invocation, o *vetOptions) error {
	found, err := readRole(ctx, inv, o)
	if err != nil {
		return err
	}
	if pending := found.role.Pending(); pending != "" {
		return fmt.Errorf("ClusterRole %s does not hold all rights of ClusterRole %s yet, which it aggregates: try again in a moment",
			found.role.Name, pending)
	}
	resources, err := apiResources(ctx, inv)
	if err != nil {
		return err
	}
	list := &rolevetting.List{
		Kubernetes: found.server.version, Role: found.role.Name, Contributors: found.role.ContributorNames(),
		Reviewed: rolevetting.Review{Date: time.Now().UTC().Format(time.DateOnly), Note: o.note},
		Rules:    rolevetting.Rights(found.role.Rules), APIResources: resources,
	}
	for _, danger := range rolevetting.Messages(rolevetting.Compare(found.role, list), rolevetting.Danger) {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: the list will hold a dangerous right, which stays reported: %s\n",
			danger)
	}
	file := filepath.Join(o.dir, rolevetting.FileName(found.server.minor))
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if before, err := rolevetting.Parse(old); err == nil && before.Agrees(list) {
			terminal.Fprintln(inv.Streams.Out, file, "unchanged")
			return nil
		}
	}
	data, err := list.Bytes()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	terminal.Fprintln(inv.Streams.Out, file, "written")
	return nil
}

// apiResources names all resources that the server has, whatever their version: pods, pods/exec,
// deployments.apps/scale.
func apiResources(ctx context.Context, inv *invocation.Invocation) ([]string, error) {
	api, err := inv.Discovery()
	if err != nil {
		return nil, err
	}
	_, lists, err := api.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the server's resources: %w", err)
	}
	names := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			names[rolevetting.Qualified(group.Group, resource.Name)] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
