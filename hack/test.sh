#!/usr/bin/env bash
# Runs the unit tests, then the suites of integration and attack, whatever becomes of the first: hack/test.sh REPORTS [FLAG…]
# REPORTS gets unit.json (go test -json) and integration.json (Ginkgo's --json-report). The flags, such as -race, are
# given to both.
set -euo pipefail
cd "$(dirname "$0")/.."
reports=$1
shift
# The operator that the suites run gets the race detector too.
case " $* " in *" -race "*) export WARREN_RACE=1 ;; esac
mkdir -p "$reports"
rm -f "$reports"/*.json

# Ginkgo runs the suites; the other packages have unit tests.
suites=(./test/integration/... ./test/attack/...)
packages=$(go list ./... | grep -vxF "$(go list "${suites[@]}")")
# Suites that look at the API server, the policies and the tools rather than at the operator have no races to find.
if [ "${WARREN_RACE:-}" = 1 ]; then
	suites=(./test/integration/{admission,guard,propagation,subnamespaces,tenants,webhooks})
fi
unit=passed integration=passed
# shellcheck disable=SC2086 # one package a word
go tool -modfile=hack/tools/go.mod gotestsum --format=pkgname --format-hide-empty-pkg --jsonfile="$reports/unit.json" \
	-- "$@" $packages || unit=FAILED
go run github.com/onsi/ginkgo/v2/ginkgo "$@" --procs="$PROCS" --keep-going --timeout=30m --poll-progress-after=120s \
	--output-dir="$reports" --json-report=integration.json "${suites[@]}" || integration=FAILED

printf '\nunit tests         %s (%s)\n' "$unit" "$reports/unit.json"
printf 'integration tests  %s (%s)\n' "$integration" "$reports/integration.json"
[ "$unit$integration" = passedpassed ]
