#!/usr/bin/env bash
# Publishes what `make release` has written: hack/publish.sh MODE VERSION REPOSITORY CHARTS DIR
# REPOSITORY is the image's, such as ghcr.io/warren-tenancy/warren, and CHARTS the folder of charts, such as ghcr.io/warren-tenancy/charts.
# MODE push pushes the images and the chart. MODE page makes the release page of tag VERSION. MODE check prints the commands of both, and runs
# none of them; it needs no network. PLATFORMS lists the platforms, as for hack/release.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=$1 version=$2 repository=$3 charts=$4 dir=$5

if ! [[ "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "error: VERSION is $version: must be a semantic version, such as make release-check VERSION=v1.2.3" >&2
	exit 1
fi
if ! grep -qx "## $version" CHANGELOG.md; then
	echo "error: CHANGELOG.md has no section \"## $version\": write there what a user notices, before the tag" >&2
	exit 1
fi
if [ -e "$dir/SHA256SUMS" ]; then
	(cd "$dir" && sha256sum --quiet --check SHA256SUMS)
elif [ "$mode" = check ]; then
	echo "# $dir is not made yet: make release VERSION=$version makes it"
else
	echo "error: $dir has no SHA256SUMS: run make release VERSION=$version first" >&2
	exit 1
fi

run() { if [ "$mode" = check ]; then echo "$*"; else "$@"; fi; }

push() {
	local arch images=()
	for arch in $(grep -oP '(?<=linux/)\w+' <<<"$PLATFORMS"); do
		run skopeo copy "oci-archive:$dir/warren-$version-image-linux-$arch.tar" "docker://$repository:$version-$arch"
		images+=("$repository:$version-$arch")
	done
	run docker buildx imagetools create --tag "$repository:$version" "${images[@]}"
	run go tool -modfile=hack/helm/go.mod helm push "$dir/chart/warren-${version#v}.tgz" "oci://$charts"
}

# A version with a hyphen, such as v1.2.3-rc.1, is a pre-release.
page() {
	local kind=--latest
	[[ "$version" != *-* ]] || kind=--prerelease
	run gh release create "$version" --verify-tag $kind --title "Warren ${version#v}" --notes-file "$dir/CHANGELOG.md" \
		"$dir"/*.yaml "$dir"/*.tar "$dir"/*.tar.gz "$dir"/*.cdx.json "$dir"/krew/*.yaml "$dir"/chart/*.tgz "$dir"/{SHA256SUMS,provenance.json}
}

case $mode in
push) push ;;
page) page ;;
check)
	push
	echo "# GitHub signs a provenance of each file of SHA256SUMS, of the image and of the chart (.github/workflows/release.yml)"
	page
	;;
*)
	echo "error: MODE is $mode: must be push, page or check" >&2
	exit 1
	;;
esac
