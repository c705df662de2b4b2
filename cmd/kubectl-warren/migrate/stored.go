package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A CustomResourceDefinition of the peer's may use a webhook of the peer's to convert objects that are stored in an old
// version. Once the peer is stopped, the API server can't read such objects, neither for the migration nor for an undo.
// So the user must store them in the new version before.

// readOldStoredVersions finds the peer's CustomResourceDefinitions, by name, that may have objects in old versions,
// with the version in which these are to be stored.
func (r *reader) readOldStoredVersions(ctx context.Context, c *Cluster) error {
	definitions, _, err := r.listPeerObjects(ctx, "apiextensions.k8s.io", "CustomResourceDefinition")
	if err != nil {
		return err
	}
	c.Peer.OldStored = map[string]string{}
	for _, d := range definitions {
		isTheirs := nestedText(d.Object, "spec", "group") == r.peer.group &&
			nestedText(d.Object, "spec", "conversion", "strategy") == "Webhook"
		stored, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
		if now := storageVersion(d); isTheirs && slices.ContainsFunc(stored, func(version string) bool { return version != now }) {
			c.Peer.OldStored[d.GetName()] = now
		}
	}
	return nil
}

func storageVersion(definition unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if isStorage, _ := version["storage"].(bool); isStorage {
			return nestedText(version, "name")
		}
	}
	return ""
}

// checkOldStored returns an error that describes how to store the objects in the new version, if the migration has not
// begun.
func (e Engine) checkOldStored(p peer) error {
	if e.Record != nil || len(e.OldStored) == 0 {
		return nil
	}
	var commands []string
	for _, name := range slices.Sorted(maps.Keys(e.OldStored)) {
		commands = append(commands, fmt.Sprintf("kubectl get %s -A -o yaml | kubectl replace -f - && kubectl patch crd %s "+
			"--subresource=status --type=merge -p '{\"status\":{\"storedVersions\":[%q]}}'", name, name, e.OldStored[name]))
	}
	return fmt.Errorf("nothing was written, because %s may have objects in an old version, which only the conversion webhook of %s can "+
		"convert. The migration stops that webhook, and then nobody could read these objects. While %s still runs, store them in the new "+
		"version with these commands, and then migrate again: %s",
		strings.Join(slices.Sorted(maps.Keys(e.OldStored)), ", "), p.title, p.title, strings.Join(commands, " && "))
}
