#!/usr/bin/env bash
# Deploys the operator onto the current cluster: hack/deploy.sh OVERLAY IMAGE CONFIG DRY_RUN
# Namespace and CRDs come first, also when DRY_RUN is `server`: without them nothing else could be checked.
set -euo pipefail
cd "$(dirname "$0")/.."
overlay=$1 image=$2 config=$3 dry_run=$4

mkdir -p .dev
manifests=$(mktemp -p .dev deploy.XXXXXX.yaml)
trap 'rm -f "$manifests"' EXIT
WITHOUT_CRDS=true hack/render.sh "$overlay" "$image" "$config" >"$manifests"

$KUBECTL apply -f config/manager/namespace.yaml
go tool -modfile=hack/tools/go.mod kustomize build config/crd | $KUBECTL apply -f -
$KUBECTL wait --for=condition=Established --timeout=60s -f config/crd/bases
$KUBECTL apply --dry-run="$dry_run" -f "$manifests"
