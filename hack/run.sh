#!/usr/bin/env bash
# Runs bin/manager in the foreground against the current kubeconfig's cluster, as the operator's own service account:
# hack/run.sh [FLAG…]. It first applies the Namespace, CRDs, RBAC and policies, for the kinds of --config FILE if
# that flag is there. It applies nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
namespace=warren-system account=warren-controller-manager

if [ "$($KUBECTL get deployment "$account" -n "$namespace" -o 'jsonpath={.spec.replicas}' --ignore-not-found)" != "" ]; then
	echo "error: the operator is deployed on this cluster: make undeploy first" >&2
	exit 1
fi
$KUBECTL apply -f config/manager/namespace.yaml
for part in crd rbac policy; do
	go tool -modfile=hack/tools/go.mod kustomize build "config/$part" | $KUBECTL apply -f -
done
$KUBECTL wait --for=condition=Established --timeout=60s -f config/crd/bases

previous=
for flag in "$@"; do
	case $previous:$flag in
	*:--config=* | *:-config=*) configuration=${flag#*=} ;;
	--config:* | -config:*) configuration=$flag ;;
	esac
	previous=$flag
done
if [ -n "${configuration:-}" ]; then
	bin/manager manifests --config="$configuration" | $KUBECTL apply -f -
fi

umask 077
mkdir -p .dev
kubeconfig=$(mktemp -p .dev run.XXXXXX.kubeconfig)
trap 'rm -f "$kubeconfig"' EXIT
# The cluster of the current context, with the operator's token in place of the user's credentials.
$KUBECTL config view --minify --flatten --raw >"$kubeconfig"
user=$(KUBECONFIG=$kubeconfig $KUBECTL config view -o 'jsonpath={.users[0].name}')
token=$($KUBECTL create token "$account" -n "$namespace" --duration=24h)
export KUBECONFIG=$kubeconfig
$KUBECTL config delete-user "$user" >/dev/null
$KUBECTL config set-credentials "$account" --token="$token" >/dev/null
$KUBECTL config set-context --current --user="$account" >/dev/null
echo "running without webhooks, for a cluster can't call a process on this machine: policies and reconcilers stand alone"
bin/manager --kubeconfig="$kubeconfig" --webhooks=false "$@"
