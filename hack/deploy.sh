#!/usr/bin/env bash
# Deploys the operator onto the current cluster: hack/deploy.sh OVERLAY IMAGE CONFIG DRY_RUN [VERSION [KEEP_CRDS]]
# It applies the Namespace and the CRDs first, even if DRY_RUN is `server`: the API server could not check the other objects without them. With
# KEEP_CRDS=true the CRDs of the cluster stay as they are. Errors in the arguments are reported before anything is changed.
set -euo pipefail
cd "$(dirname "$0")/.."
overlay=$1 image=$2 config=$3 dry_run=$4 version=${5:-} keep_crds=${6:-false}

mkdir -p .dev
manifests=$(mktemp -p .dev deploy.XXXXXX.yaml)
crds=$(mktemp -p .dev deploy-crds.XXXXXX.yaml)
trap 'rm -f "$manifests" "$crds"' EXIT
hack/render.sh "$overlay" "$image" "$config" "$version" |
	awk -v crds="$crds" 'BEGIN {RS = "---\n"; ORS = "---\n"} /\nkind: CustomResourceDefinition\n/ {print >crds; next} {print}' >"$manifests"
hack/check-versions.sh "$version" "$keep_crds"

$KUBECTL apply -f config/manager/namespace.yaml
if [ "$keep_crds" != true ]; then
	$KUBECTL apply -f "$crds"
	$KUBECTL wait --for=condition=Established --timeout=60s -f "$crds"
fi
$KUBECTL apply --dry-run="$dry_run" -f "$manifests"
