#!/usr/bin/env bash
# Checks that an upgrade from the version of the CRDs on the current cluster to VERSION is allowed: hack/check-versions.sh VERSION KEEP_CRDS
# If one of the two is no release such as v1.2.3, it allows everything. The chart checks the same in config/chart/templates/checks.yaml.
set -euo pipefail
to=$1 keep_crds=$2
crd=lnamespaces.tenancy.warren.dev
from=$($KUBECTL get crds "$crd" --ignore-not-found -o jsonpath='{.metadata.labels.app\.kubernetes\.io/version}')

release='^v([0-9]+)\.([0-9]+)\.([0-9]+)'
[[ "$from" =~ $release ]] || exit 0
from_major=${BASH_REMATCH[1]} from_minor=${BASH_REMATCH[2]} from_patch=${BASH_REMATCH[3]}
[[ "$to" =~ $release ]] || exit 0
to_major=${BASH_REMATCH[1]} to_minor=${BASH_REMATCH[2]} to_patch=${BASH_REMATCH[3]}

differ="CustomResourceDefinition $crd on this cluster is of version $from, and this clone of $to"
newest=$(printf '%s\n' "$from_major.$from_minor.$from_patch" "$to_major.$to_minor.$to_patch" | sort -V | tail -n 1)
if [ "$newest" != "$to_major.$to_minor.$to_patch" ]; then
	[ "$keep_crds" = true ] && exit 0
	echo "error: $differ: take a clone of at least that version, or add KEEP_CRDS=true to return to an older operator" >&2
	exit 1
fi
if ((to_major > from_major + 1)); then
	echo "error: $differ: upgrade to v$((from_major + 1)) first, because an upgrade may not skip a major version" >&2
	exit 1
fi
if ((to_major == from_major && to_minor > from_minor + 2)); then
	echo "error: $differ: upgrade to v$from_major.$((from_minor + 2)) first, because an upgrade may skip one minor version only" >&2
	exit 1
fi
