#!/usr/bin/env bash
# Writes what a release ships to a folder: hack/release.sh VERSION REPOSITORY DIR
# PLATFORMS lists the platforms of the plugins, such as linux/amd64; for each platform of Linux, there is an image too. The same commit, arguments,
# PLATFORMS and Go version give the same bytes, whenever and wherever the script runs.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 repository=$2 out=$3

if ! [[ "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "error: VERSION is $version: must be a semantic version, such as make release VERSION=v1.2.3" >&2
	exit 1
fi
if [ -n "$(git status --porcelain)" ]; then
	echo "error: the clone has changes that are not committed: a release is made of a commit" >&2
	exit 1
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
export SOURCE_DATE_EPOCH CGO_ENABLED=0
image=$repository:$version
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build OS ARCH FOLDER PROGRAM:PACKAGE…
build() {
	local program
	for program in "${@:4}"; do
		GOOS=$1 GOARCH=$2 go build -trimpath -ldflags "-s -w -X main.version=$version -X main.commit=${commit:0:7}" \
			-o "$3/${program%%:*}$([ "$1" = windows ] && echo .exe || true)" "${program#*:}"
	done
}

for platform in $PLATFORMS; do
	build "${platform%/*}" "${platform#*/}" "$work/$platform" kubectl-warren:./cmd/kubectl-warren kubectl-sudo:./cmd/kubectl-sudo
done
for arch in $(grep -oP '(?<=linux/)\w+' <<<"$PLATFORMS"); do
	build linux $arch "$work/linux/$arch" manager:. manager-billing:./cmd/manager-billing manager-bigquery:./cmd/manager-bigquery
	binaries=("$work/linux/$arch"/{manager,manager-billing,manager-bigquery,kubectl-warren})
	go run ./hack/image -name "$image" -o "$out/warren-$version-image-linux-$arch.tar" -version "$version" -revision "$commit" "${binaries[@]}"
	go run ./hack/sbom -version "$version" -o "$out/warren-$version-linux-$arch.cdx.json" "${binaries[@]}"
done
for overlay in standard open hardened; do
	hack/render.sh $overlay "$image" "" "$version" >"$out/install-$overlay.yaml"
done

go run ./hack/chart -o "$work/chart/warren" -version "$version" -repository "$repository"
find "$work/chart" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir "$out/chart"
helm() { go tool -modfile=hack/helm/go.mod helm "$@"; }
helm package "$work/chart/warren" --destination "$out/chart" >/dev/null
helm repo index "$out/chart"
sed -i -E 's/^( *(created|generated): ).*/\1"'"$date"'"/' "$out/chart/index.yaml"

go run ./hack/release -version "$version" -commit "$commit" -plugins "$work" -o "$out"
echo "wrote $out: $(find "$out" -type f | wc -l) files, $(du -sh "$out" | cut -f1)"
