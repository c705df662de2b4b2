#!/usr/bin/env bash
# Generates everything into a temporary folder and compares it with what is committed; the clone isn't touched.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
generate() { go tool -modfile=hack/tools/go.mod controller-gen "$@"; }

generate crd paths=./api/v1alpha1/... "output:crd:dir=$fresh/crd"
for package in api/v1alpha1 api/config/v1alpha1; do
	generate object "paths=./$package" "output:object:dir=$fresh/$package"
done
stale=0
diff -ru config/crd/bases "$fresh/crd" || stale=1
for package in api/v1alpha1 api/config/v1alpha1; do
	diff -u "$package/zz_generated.deepcopy.go" "$fresh/$package/zz_generated.deepcopy.go" || stale=1
done
if [ $stale = 1 ]; then
	echo "error: generated files are out of date: run make manifests" >&2
	exit 1
fi
