#!/usr/bin/env bash
# Prints the manifests of an overlay: hack/render.sh OVERLAY [IMAGE [CONFIG [VERSION]]]
# With CONFIG, the policies and the role that list its kinds are generated for it. If VERSION is a release such as v1.2.3, the CRDs have it as a
# label. The kustomization for all this is a temporary one in .dev, which git ignores.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD overlay=$1 image=${2:-} config=${3:-} version=${4:-}
kustomize() { go tool -modfile="$root/hack/tools/go.mod" kustomize "$@"; }

if [[ -z "$overlay" || "$overlay" = */* || "$overlay" = .* || ! -d "config/overlays/$overlay" ]]; then
	# loopback is for tests and the playground.
	echo "error: OVERLAY is $overlay: must be one of $(cd config/overlays && printf '%s\n' * | grep -vx loopback | xargs)" >&2
	exit 1
fi
if [[ -n "$image" && "${image##*/}" != *[:@]* ]]; then
	echo "error: IMG is $image: must end in a tag or digest, such as $image:v1, because nodes would pull \`latest\` anew at every start" >&2
	exit 1
fi
if [ -n "$config" ] && [ ! -r "$config" ]; then
	echo "error: CONFIG is $config: no such file, or not readable" >&2
	exit 1
fi

mkdir -p .dev
work=$(mktemp -d -p .dev render.XXXXXX)
trap 'rm -rf "$root/$work"' EXIT
cp -R config "$work/config"
if [ -n "$config" ]; then
	go build -o "$work/manager" . # `go run` would add "exit status 1" to what is wrong with the file
	"$work/manager" manifests --config="$config" --dir="$work/config"
fi
cat >"$work/kustomization.yaml" <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- config/overlays/$overlay
END
if [ -n "$config" ]; then
	cp "$config" "$work/config.yaml"
	cat >>"$work/kustomization.yaml" <<'END'
configMapGenerator:
- name: warren-config
  namespace: warren-system
  behavior: merge
  files: [config.yaml]
END
fi
if [[ "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
	cat >>"$work/kustomization.yaml" <<END
patches:
- target: {kind: CustomResourceDefinition}
  patch: |-
    - {op: add, path: /metadata/labels/app.kubernetes.io~1version, value: $version}
END
fi
if [ -n "$image" ]; then
	(cd "$work" && kustomize edit set image "warren=$image")
fi
kustomize build "$work"
