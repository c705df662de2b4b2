#!/usr/bin/env bash
# Installs Warren and tenant payments on a kind cluster of its own: hack/kind.sh DIR CHART_VERSION
# DIR gets the cluster's kubeconfig, the image and the chart. The image's tag is new each time, so that a repetition brings this clone's code to
# the cluster. CLUSTER names the cluster; NODE is the image of its node, if it isn't kind's default.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1 version=$2 cluster=${CLUSTER:-warren}
image=localhost/warren tag=kind-$(date +%s)

missing=()
command -v kind >/dev/null || missing+=("kind (https://kind.sigs.k8s.io)")
command -v docker >/dev/null || command -v podman >/dev/null || missing+=("Docker or podman")
command -v kubectl >/dev/null || missing+=("kubectl")
if [ ${#missing[@]} != 0 ]; then
	list=$(printf ', and %s' "${missing[@]}")
	echo "error: the PATH lacks ${list#, and }: install what is missing, or run make demo, which needs none of it" >&2
	exit 1
fi
if ! docker info >/dev/null 2>&1 && ! podman info >/dev/null 2>&1; then
	echo "error: no Docker or podman answers: start it, or run make demo, which needs none" >&2
	exit 1
fi

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
export KUBECONFIG=$dir/kubeconfig # the user's own stays as it is
if kind get clusters 2>/dev/null | grep -x "$cluster" >/dev/null; then
	kind export kubeconfig --name "$cluster"
else
	kind create cluster --name "$cluster" ${NODE:+--image "$NODE"}
fi

make -s image IMG="$image:$tag" IMAGE_TAR="$dir/image.tar"
kind load image-archive "$dir/image.tar" --name "$cluster"
go run ./hack/chart -o "$dir/chart/warren" -version "$version" -repository "$image"

kubectl apply -f config/manager/namespace.yaml
go tool -modfile=hack/helm/go.mod helm upgrade --install warren "$dir/chart/warren" --namespace warren-system --set "image.tag=$tag" \
	--wait --timeout 5m
# The operator gives its certificate to the API server some seconds after its pods are ready.
tries=0
until kubectl apply -f config/samples/tenancy_v1alpha1_lnamespace.yaml; do
	[ $((tries += 1)) -lt 12 ] || exit 1
	sleep 5
done
kubectl wait lns/payments --for=condition=Ready --timeout=2m
make -s build-plugins

cat <<END

Warren runs on kind cluster $cluster, with tenant payments. Its user is alice, its manager mia, its sudoer bob. Try it:
  export KUBECONFIG=$KUBECONFIG PATH=$PWD/bin:\$PATH
  kubectl warren create pay-web -n payments --wait --as alice
  kubectl warren tree payments
Delete it: kind delete cluster --name $cluster
END
