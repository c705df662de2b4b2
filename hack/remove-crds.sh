#!/usr/bin/env bash
# Removes Warren's CRDs from the current cluster: hack/remove-crds.sh FILE
# First it saves all our objects to FILE. Then it deletes the CRDs while the operator runs. The operator releases the
# namespaces: they stay, with what is in them. At the end the script waits until the operator has deleted its access objects.
set -euo pipefail
cd "$(dirname "$0")/.."
saved=$1

crds=$($KUBECTL get crds -o name | grep '\.tenancy\.warren\.dev$' || true)
if [ -z "$crds" ]; then
	echo "no CRD of Warren is on this cluster"
	exit 0
fi
resources=$(sed 's|.*/||' <<<"$crds" | paste -sd, -)
mkdir -p "$(dirname "$saved")"
# Without uid and resourceVersion, so that `kubectl apply -f` takes the file back.
$KUBECTL get "$resources" --all-namespaces -o yaml 2> >(grep -v 'is not namespace scoped' >&2) |
	sed -E '/^    (resourceVersion|uid): /d' >"$saved"
echo "saved all objects of $resources to $saved"

# shellcheck disable=SC2086 # one name a word
if ! $KUBECTL delete $crds --timeout="${CRD_TIMEOUT:-60s}"; then
	echo "error: finalizers still hold some objects: if the operator does not run, or has lost its rights, run make undeploy, which removes the finalizers; then repeat this command" >&2
	exit 1
fi
for _ in $(seq 60); do
	left=$($KUBECTL get clusterroles,clusterrolebindings,rolebindings --all-namespaces -l tenancy.warren.dev/access -o name)
	if [ -z "$left" ]; then
		exit 0
	fi
	sleep 1
done
printf 'error: these access objects are left after 60 s; delete them by hand:\n%s\n' "$left" >&2
exit 1
