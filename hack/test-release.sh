#!/usr/bin/env bash
# Makes a release of the current commit twice, in two clones, for PLATFORMS, and compares the checksums of all files.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in one two; do
	git clone -q . "$work/$clone"
	make -s -C "$work/$clone" release VERSION=v0.0.1 PLATFORMS="$PLATFORMS"
	(cd "$work/$clone/dist/v0.0.1" && sha256sum --quiet --check SHA256SUMS && cp SHA256SUMS "$work/$clone.sums")
done
diff -u "$work/one.sums" "$work/two.sums"
cmp "$work"/{one,two}/dist/v0.0.1/provenance.json
echo "1 passed, 0 failed"
