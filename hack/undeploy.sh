#!/usr/bin/env bash
# Removes the operator from the current cluster, whichever overlay installed it: runs `manager release`, then deletes the rest of
# the operator's RBAC, and its namespace unless that holds a billing ledger. CRDs, tenants, their namespaces, copies and access objects stay; so does ClusterRole
# warren:impersonate-on, which bindings of tenants may name. If the CRDs do not exist, access objects are deleted too. It may be repeated.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .dev
manifests=$(mktemp -p .dev undeploy.XXXXXX.yaml)
kubeconfig=$(umask 077; mktemp -p .dev undeploy.XXXXXX.kubeconfig)
trap 'rm -f "$manifests" "$kubeconfig"' EXIT
# A ledger in SQLite is on a claim in the operator's namespace, and nowhere else. Whoever made the claim, its data stay.
claims=$($KUBECTL get persistentvolumeclaims --namespace=warren-system -o name)
# Namespace warren-sudo stays: rights in the trees name service accounts of it, so nobody else may ever own it.
# `open` holds all that `standard` holds.
hack/render.sh open |
	awk -v keep="${claims:+yes}" 'BEGIN {RS = "---\n"; ORS = "---\n"} !/\nkind: CustomResourceDefinition\n/ && !/\n  name: warren:impersonate-on\n/ &&
		!(/\nkind: Namespace\n/ && (keep != "" || /\n  name: warren-sudo\n/))' >"$manifests"

# The very cluster that kubectl speaks to, also where KUBECTL says `kubectl --context=…`.
$KUBECTL config view --minify --flatten --raw >"$kubeconfig"
"${MANAGER:-bin/manager}" release --kubeconfig="$kubeconfig"
$KUBECTL delete --ignore-not-found -f "$manifests"
# What components have added, such as the billing exporter, which must not run on without its policy.
$KUBECTL delete clusterroles,clusterrolebindings -l app.kubernetes.io/name=warren --field-selector=metadata.name!=warren:impersonate-on
$KUBECTL delete roles,rolebindings --namespace=default -l app.kubernetes.io/name=warren
if [ -n "$claims" ]; then
	$KUBECTL delete deployments,services,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets \
		--namespace=warren-system -l app.kubernetes.io/name=warren
fi
# CRDs that were deleted before go now. Without them no operator could ever take off the rights that it had given.
deleted=$($KUBECTL get crds -o jsonpath='{range .items[?(@.metadata.deletionTimestamp)]}crd/{.metadata.name}{"\n"}{end}' | grep '\.tenancy\.warren\.dev$' || true)
# shellcheck disable=SC2086 # one name a word
[ -z "$deleted" ] || $KUBECTL wait --for=delete $deleted --timeout=300s
crds=$($KUBECTL get crds -o name)
if ! grep -q '\.tenancy\.warren\.dev$' <<<"$crds"; then
	$KUBECTL delete clusterrolebindings,clusterroles -l tenancy.warren.dev/access
	$KUBECTL delete rolebindings --all-namespaces -l tenancy.warren.dev/access
fi
if [ -n "$claims" ]; then
	# shellcheck disable=SC2086 # one name a word
	echo "Warren's RBAC is gone; namespace warren-system stays, because $(echo $claims) in it may hold the billing ledger: kubectl delete namespace warren-system deletes both."
else
	echo "Warren's RBAC and namespace warren-system are gone."
fi
