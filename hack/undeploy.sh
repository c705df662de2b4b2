#!/usr/bin/env bash
# Takes the operator off the current cluster, whichever overlay it came from. CRDs, tenants, their namespaces, copies and
# access objects stay; so does ClusterRole warren:impersonate-on, which bindings of tenants may name.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .dev
manifests=$(mktemp -p .dev undeploy.XXXXXX.yaml)
trap 'rm -f "$manifests"' EXIT
# `open` holds all that `standard` holds.
WITHOUT_CRDS=true hack/render.sh open |
	awk 'BEGIN {RS = "---\n"; ORS = "---\n"} !/\n  name: warren:impersonate-on\n/' >"$manifests"

# The operator goes first, so that nobody works with half of its rights.
$KUBECTL delete deployment warren-controller-manager -n warren-system --ignore-not-found --cascade=foreground
$KUBECTL delete --ignore-not-found -f "$manifests"
cat <<'END'
Warren is off this cluster. What stays: its CRDs, the tenants, their namespaces, and the rights that their lists give.
Until it is back (make deploy), nothing follows a change: lists of a tenant, sources, labels. A tenant or sub-namespace
that is deleted meanwhile waits for it.
END
