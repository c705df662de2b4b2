#!/usr/bin/env bash
# Takes the operator off the current cluster, whichever overlay it came from: `manager release`, then the rest of its
# RBAC and its namespace. CRDs, tenants, their namespaces, copies and access objects stay; so does ClusterRole
# warren:impersonate-on, which bindings of tenants may name. It may be said again.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .dev
manifests=$(mktemp -p .dev undeploy.XXXXXX.yaml)
kubeconfig=$(umask 077; mktemp -p .dev undeploy.XXXXXX.kubeconfig)
trap 'rm -f "$manifests" "$kubeconfig"' EXIT
# `open` holds all that `standard` holds.
WITHOUT_CRDS=true hack/render.sh open |
	awk 'BEGIN {RS = "---\n"; ORS = "---\n"} !/\n  name: warren:impersonate-on\n/' >"$manifests"

# The very cluster that kubectl speaks to, also where KUBECTL says `kubectl --context=…`.
$KUBECTL config view --minify --flatten --raw >"$kubeconfig"
"${MANAGER:-bin/manager}" release --kubeconfig="$kubeconfig"
$KUBECTL delete rolebindings --all-namespaces -l tenancy.warren.dev/access=operator # its own rights, with component hardened
$KUBECTL delete --ignore-not-found -f "$manifests"
echo "Warren's RBAC and namespace warren-system are gone."
