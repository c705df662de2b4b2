#!/usr/bin/env bash
# Proves that the tests find defects: for each test/defects/NAME.patch, it runs the tests that the line "Test:" of the patch names, with the
# patch in place, and expects a failure. Nothing in the tree is changed: Go takes the patched files by its flag -overlay.
# hack/test-defects.sh [NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ $# -gt 0 ] || set -- $(basename -s .patch test/defects/*.patch)

found=0 missed=()
printf '%-28s %-9s %s\n' defect found by
for name in "$@"; do
	patch=$PWD/test/defects/$name.patch dir=$tmp/$name
	mapfile -t files < <(sed -n 's,^+++ b/,,p' "$patch")
	mkdir "$dir"
	cp --parents "${files[@]}" "$dir"
	(cd "$dir" && GIT_CEILING_DIRECTORIES=$tmp git apply "$patch")
	replaced=$(for file in "${files[@]}"; do printf ',"%s":"%s"' "$PWD/$file" "$dir/$file"; done)
	echo "{\"Replace\":{${replaced#,}}}" >"$dir/overlay.json"
	read -ra test < <(sed -n 's/^Test: //p' "$patch")
	if go test -count=1 -vet=off -ldflags="-s -w" -overlay "$dir/overlay.json" "${test[@]}" >"$dir/output" 2>&1; then
		missed+=("$name")
		printf '%-28s %-9s %s\n' "$name" MISSED "${test[*]}"
	elif grep -q 'build failed\|setup failed' "$dir/output"; then
		cat "$dir/output"
		missed+=("$name")
		printf '%-28s %-9s %s\n' "$name" 'NO BUILD' "${test[*]}"
	else
		found=$((found + 1))
		by=$(grep -oE '\b[A-Z]{3,4}-[A-Z]*[0-9]+[a-z]?\b' "$dir/output" | head -1 || true)
		events=$(grep -oE 'seed [0-9]+, [0-9]+ events' "$dir/output" | head -1 || true)
		printf '%-28s %-9s %s\n' "$name" yes "${by:-${test[*]}}${events:+ ($events)}"
	fi
done
printf '%d of %d defects are found\n' "$found" $#
[ ${#missed[@]} = 0 ]
