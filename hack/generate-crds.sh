#!/usr/bin/env bash
# Writes the CRDs of the API into a folder: hack/generate-crds.sh DIR
# controller-gen gives metadata no fields. This script adds the field name, so that a rule about the name can have the fieldPath .metadata.name.
# It also bounds the length of each quantity: without, a rule that matches one costs more than an API server allows.
set -euo pipefail
cd "$(dirname "$0")/.."
go tool -modfile=hack/tools/go.mod controller-gen crd paths=./api/v1alpha1/... "output:crd:dir=$1"
for file in "$1"/tenancy.warren.dev_*.yaml; do
	awk '{ print }
		/^          metadata:$/ { print "            properties:\n              name:\n                type: string" }
		/^ *pattern: .*\[KMGTPE\]i/ { sub(/pattern:.*/, "maxLength: 64"); print }' "$file" >"$file.new"
	mv "$file.new" "$file"
done
