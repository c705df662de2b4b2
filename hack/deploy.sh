#!/usr/bin/env bash
# Deploys the operator onto the current cluster: hack/deploy.sh OVERLAY IMAGE CONFIG DRY_RUN
# Namespace and CRDs come first, also when DRY_RUN is `server`: without them nothing else could be checked.
set -euo pipefail
cd "$(dirname "$0")/.."
overlay=$1 image=$2 config=$3 dry_run=$4

mkdir -p .dev
manifests=$(mktemp -p .dev deploy.XXXXXX.yaml)
crds=$(mktemp -p .dev deploy-crds.XXXXXX.yaml)
trap 'rm -f "$manifests" "$crds"' EXIT
hack/render.sh "$overlay" "$image" "$config" |
	awk -v crds="$crds" 'BEGIN {RS = "---\n"; ORS = "---\n"} /\nkind: CustomResourceDefinition\n/ {print >crds; next} {print}' >"$manifests"

$KUBECTL apply -f config/manager/namespace.yaml
$KUBECTL apply -f "$crds"
$KUBECTL wait --for=condition=Established --timeout=60s -f "$crds"
$KUBECTL apply --dry-run="$dry_run" -f "$manifests"
