#!/usr/bin/env bash
# Proves that the tests find defects: for each test/defects/NAME.patch, it runs the tests that the line "Test:" of the patch names, with the
# patch in place, and expects a test to fail. Nothing in the tree is changed: Go takes the patched files by its flag -overlay, so that all other
# packages come from its cache. A line "Suite: FOLDER FOCUS" in place of "Test:" names cases of a suite, which builds the operator and reads the
# manifests itself: such a patch is applied to a copy of the tree. The line "Peer:" of a patch names an issue of another project with such a
# defect, if one is known.
# hack/test-defects.sh [NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SIMULATION_SEED=1 SIMULATION_HISTORIES=20000 # enough of them, and the same each time
[ $# -gt 0 ] || set -- $(basename -s .patch test/defects/*.patch)

# patch_copies NAME copies the files of a patch to $tmp/NAME, patches them there, and writes the overlay for Go beside them.
patch_copies() {
	local patch=$PWD/test/defects/$1.patch dir=$tmp/$1 files replaced
	mapfile -t files < <(sed -n 's,^+++ b/,,p' "$patch")
	mkdir "$dir"
	cp --parents "${files[@]}" "$dir"
	(cd "$dir" && GIT_CEILING_DIRECTORIES=$tmp git apply -C1 "$patch") || return
	replaced=$(for file in "${files[@]}"; do printf ',"%s":"%s"' "$PWD/$file" "$dir/$file"; done)
	echo "{\"Replace\":{${replaced#,}}}" >"$dir/overlay.json"
}

# judge NAME TEST… runs the tests with the patch, and prints what has become of it: yes, or what is wrong.
judge() {
	local name=$1 dir=$tmp/$1
	patch_copies "$name" 2>"$dir.error" || { echo 'NO PATCH'; return; }
	if go test -count=1 -vet=off -ldflags="-s -w" -overlay "$dir/overlay.json" "${@:2}" >"$dir/output" 2>&1; then
		echo MISSED
	elif grep -q 'build failed\|setup failed' "$dir/output"; then
		echo 'NO BUILD'
	elif ! grep -q '^ *--- FAIL: ' "$dir/output"; then
		echo 'NO TEST' # it ended in another way
	else
		echo yes
	fi
}

# judge_suite NAME FOLDER FOCUS does the same for cases of a suite.
judge_suite() {
	local dir=$tmp/$1
	mkdir -p "$dir" "$tmp/tree"
	[ -e "$tmp/tree/go.mod" ] || git ls-files -z | xargs -0 cp --parents -t "$tmp/tree"
	local patch=$PWD/test/defects/$1.patch status=0
	cd "$tmp/tree" || return
	GIT_CEILING_DIRECTORIES=$tmp git apply -C1 "$patch" 2>"$dir.error" || { echo 'NO PATCH'; return; }
	go run github.com/onsi/ginkgo/v2/ginkgo -ldflags='-s -w' -vet=off --no-color --focus="$3" "./$2" >"$dir/output" 2>&1 || status=$?
	GIT_CEILING_DIRECTORIES=$tmp git apply -R -C1 "$patch"
	if [ "$status" = 0 ]; then
		echo MISSED
	elif grep -q '^  \[FAIL\] .*\[It\]' "$dir/output"; then
		echo yes
	else
		echo 'NO TEST'
	fi
}

caught=0 missed=0
printf '%-34s %-9s %5s  %s\n' defect caught s by
for name in "$@"; do
	read -ra test < <(sed -n 's/^Test: //p' "test/defects/$name.patch") || true
	read -r suite focus < <(sed -n 's/^Suite: //p' "test/defects/$name.patch") || true
	began=$SECONDS
	if [ -n "${suite:-}" ]; then
		verdict=$(judge_suite "$name" "$suite" "$focus")
	else
		verdict=$(judge "$name" "${test[@]}")
	fi
	by=${suite:+$suite $focus}${test[*]}
	if [ "$verdict" = yes ]; then
		caught=$((caught + 1))
		number=$(grep -- '--- FAIL' "$tmp/$name/output" | grep -oE '\b[A-Z]{3,4}-[A-Z]*[0-9]+[a-z]?\b' | head -1 || true)
		events=$(grep -oE 'seed [0-9]+, [0-9]+ events' "$tmp/$name/output" | head -1 || true)
		by="$by${number:+ ($number${events:+, $events})}"
	else
		missed=$((missed + 1))
	fi
	printf '%-34s %-9s %5d  %s\n' "$name" "$verdict" "$((SECONDS - began))" "$by"
	[ "$verdict" = yes ] || cat "$tmp/$name.error" "$tmp/$name/output" 2>/dev/null | tail -20 || true
done
printf '%d of %d defects are caught, %d missed, in %d s\n' "$caught" $# "$missed" "$SECONDS"
[ "$missed" = 0 ]
