#!/usr/bin/env bash
# Generates everything into a temporary folder and compares it with what is committed; the clone isn't touched.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
generate() { go tool -modfile=hack/tools/go.mod controller-gen "$@"; }

hack/generate-crds.sh "$fresh/crd"
generate crd paths=./examples/memcached "output:crd:dir=$fresh/examples"
for package in api/v1alpha1 api/config/v1alpha1 examples/memcached; do
	generate object "paths=./$package" "output:object:dir=$fresh/$package"
done
go run . manifests --config=config/manager/config.yaml --dir="$fresh"
stale=0
distributions=tenancy.warren.dev_resourcedistributions.yaml # stands alone: a component brings it
diff -u "config/crd/distribution/$distributions" "$fresh/crd/$distributions" || stale=1
rm "$fresh/crd/$distributions"
quotas=tenancy.warren.dev_hierarchicalresourcequotas.yaml # so does this one
diff -u "config/crd/budgets/$quotas" "$fresh/crd/$quotas" || stale=1
rm "$fresh/crd/$quotas"
requests=tenancy.warren.dev_sudorequests.yaml # and this one
diff -u "config/crd/requests/$requests" "$fresh/crd/$requests" || stale=1
rm "$fresh/crd/$requests"
diff -ru config/crd/bases "$fresh/crd" || stale=1
diff -u examples/memcached/config/cache.example.com_memcacheds.yaml "$fresh/examples/cache.example.com_memcacheds.yaml" || stale=1
for package in api/v1alpha1 api/config/v1alpha1 examples/memcached; do
	diff -u "$package/zz_generated.deepcopy.go" "$fresh/$package/zz_generated.deepcopy.go" || stale=1
done
for file in policy/copy.yaml policy/rail_names.yaml policy/operator_cage_objects.yaml rbac/kinds_configured_role.yaml hints/source_hints.yaml; do
	diff -u "config/$file" "$fresh/$file" || stale=1
done
# The overlays share these files, so every configuration file that ships must name the same kinds.
for file in config/components/*/config.yaml; do
	cmp <(go run . manifests --config="$file") <(go run . manifests --config=config/manager/config.yaml) || stale=1
done
if [ $stale = 1 ]; then
	echo "error: generated files are out of date: run make manifests" >&2
	exit 1
fi
go run ./hack/reference "$fresh/reference"
go run ./hack/behaviour "$fresh/behaviour"
go run ./hack/pictures "$fresh/pictures"
for file in "$fresh"/reference/* "$fresh"/behaviour/* "$fresh"/pictures/*; do
	diff -u "docs/${file#"$fresh/"}" "$file" || stale=1
done
if [ $stale = 1 ]; then
	echo "error: generated pages are out of date: run make docs" >&2
	exit 1
fi
