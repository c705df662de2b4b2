#!/usr/bin/env bash
# Runs the unit tests, and then the suites of integration and attack: hack/test.sh REPORTS [FLAG…]
# REPORTS gets unit.json (go test -json) and suites.json (Ginkgo's --json-report). The flags, such as -race, are for both. ONLY=unit or ONLY=suites
# runs one of the two. At the end hack/testfacts prints what the run cost (REPORTS/facts.jsonl has the records), and hack/speccoverage names the
# cases of docs/behaviour that no test has shown: then the run fails.
set -euo pipefail
cd "$(dirname "$0")/.."
reports=$1
shift
# The operator that the suites run gets the race detector too, which is written in C.
case " $* " in *" -race "*) export WARREN_RACE=1 CGO_ENABLED=1 ;; esac
mkdir -p "$reports"
rm -f "$reports"/*.json "$reports"/{unit,suites}.txt "$reports"/facts.jsonl
WARREN_FACTS=$(realpath "$reports")/facts.jsonl
export WARREN_FACTS
go build -o bin/testfacts ./hack/testfacts

# Ginkgo runs the suites; the other packages have unit tests. All suites are one run of Ginkgo, one after the other, for each runs several cases
# at once.
suites=(./test/integration/... ./test/attack/...)
packages=$(go list ./... github.com/warren-tenancy/warren/pkg/watchset/... | grep -vxF "$(go list "${suites[@]}")")
# Suites that look at the API server, the policies and the tools rather than at the operator have no races to find; nor have the tools
# themselves. What links BigQuery's libraries takes minutes to build with the detector.
if [ "${WARREN_RACE:-}" = 1 ]; then
	packages=$(grep -v -e /hack -e /test -e bigquery <<<"$packages")
	suites=(./test/integration/{propagation,guard,tenants,webhooks,trees,admission,informers})
fi

# Tests are linked without debugging information, which takes a third of the time; stack traces stay whole. Vet is a part of `make verify`.
flags=("$@" "-ldflags=-s -w" -vet=off)
# Eight cases take a fifth of the time of all: `make test-slow` and `make test-long` run them.
slow=(--label-filter='!slow')
limit=75m
[ "${TEST_WINDOW:-}" != full ] || { limit=3h && slow=(); }

unit() {
	# shellcheck disable=SC2086 # one package a word
	bin/testfacts job unit go tool -modfile=hack/tools/go.mod gotestsum --format=pkgname --format-hide-empty-pkg \
		--jsonfile="$reports/unit.json" -- -timeout=30m "${flags[@]}" $packages 2>&1 | tee "$reports/unit.txt"
}
suites() {
	bin/testfacts job suites go run github.com/onsi/ginkgo/v2/ginkgo "${flags[@]}" "${slow[@]}" --procs="$PROCS" --keep-going --timeout="$limit" \
		--poll-progress-after=120s --output-dir="$reports" --json-report=suites.json "${suites[@]}" 2>&1 | tee "$reports/suites.txt"
}
units="not run" integration="not run" shown="not looked at"
[ "${ONLY:-}" = suites ] || { unit && units=passed || units=FAILED; }
[ "${ONLY:-}" = unit ] || { suites && integration=passed || integration=FAILED; }
bin/testfacts print "$reports" || true
if [ "$units$integration${WARREN_RACE:-}" = passedpassed ]; then
	go run ./hack/speccoverage -enforce "$reports"/*.json && shown=passed || shown=FAILED
fi

# The last lines say what failed, and before them why, and how much room and memory the machine has left: whoever sees only them sees enough.
if [[ $units$integration == *FAILED* ]]; then
	df -h . "${TMPDIR:-/tmp}" || true
	free -m 2>/dev/null || true
	echo 'what the first failures of the suites say:'
	grep -hF -A4 '[FAILED] ' "$reports/suites.txt" 2>/dev/null | grep -v -e '\[FAILED\] \[' -e '^--$' | cut -c1-300 | head -30 || true
fi
printf '\nunit tests    %s (%s)\n' "$units" "$reports/unit.json"
printf 'suites        %s (%s)\n' "$integration" "$reports/suites.json"
printf 'cases shown   %s\n' "$shown"
grep -hF '=== FAIL' "$reports/unit.txt" 2>/dev/null | cut -c1-90 | head -5 || true
sed -n "s/$(printf '\033')\[[0-9;]*m//g"'; s/^.*\[\(FAIL\|TIMEDOUT\|PANICKED\|INTERRUPTED\)\] /FAILED: /p' "$reports/suites.txt" 2>/dev/null | cut -c1-90 | sort -u | head -8 || true
[[ $units$integration$shown != *FAILED* ]]
