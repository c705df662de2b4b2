#!/usr/bin/env bash
# Runs the unit tests, and beside them the suites of integration and attack: hack/test.sh REPORTS [FLAG…]
# REPORTS gets unit.json (go test -json) and suites-1.json to suites-3.json (Ginkgo's --json-report). The flags, such as -race,
# are for both. ONLY=unit or ONLY=suites runs one of the two. At the end hack/testfacts prints what the run cost (REPORTS/facts.jsonl has the
# records), and hack/speccoverage names the cases of docs/behaviour that no test has shown: then the run fails.
set -euo pipefail
cd "$(dirname "$0")/.."
reports=$1
shift
# The operator that the suites run gets the race detector too, which is written in C.
case " $* " in *" -race "*) export WARREN_RACE=1 CGO_ENABLED=1 ;; esac
mkdir -p "$reports"
rm -f "$reports"/*.json "$reports"/facts.jsonl
WARREN_FACTS=$(realpath "$reports")/facts.jsonl
export WARREN_FACTS
go build -o bin/testfacts ./hack/testfacts

# Ginkgo runs the suites; the other packages have unit tests. These and three lanes of suites run side by side, for most cases wait rather than
# compute; each lane takes about as long as the others.
suites=(./test/integration/... ./test/attack/...)
packages=$(go list ./... github.com/warren-tenancy/warren/pkg/watchset/... | grep -vxF "$(go list "${suites[@]}")")
lane1=(./test/integration/{propagation,distribution,tenants} ./test/attack)
lane2=(./test/integration/{trees,fault})
# Suites that look at the API server, the policies and the tools rather than at the operator have no races to find; nor have the tools
# themselves. What links BigQuery's libraries takes minutes to build with the detector.
if [ "${WARREN_RACE:-}" = 1 ]; then
	packages=$(grep -v -e /hack -e /test -e bigquery <<<"$packages")
	lane1=(./test/integration/{propagation,guard})
	lane2=(./test/integration/{tenants,webhooks})
	lane3=(./test/integration/{trees,admission,informers})
else
	mapfile -t lane3 < <(go list "${suites[@]}" | grep -vxF "$(go list "${lane1[@]}" "${lane2[@]}")")
	lane3=("${lane3[@]/#$(go list -m)/.}")
fi

# run NAME SUITE… runs suites one after the other.
run() {
	local report=$1
	shift
	bin/testfacts job "$report" go run github.com/onsi/ginkgo/v2/ginkgo "${flags[@]}" "${slow[@]}" --procs="$(((PROCS + 1) / 2))" --keep-going --timeout="$limit" --poll-progress-after=120s \
		--output-dir="$reports" --json-report="$report.json" "$@"
}
# Tests are linked without debugging information, which takes a third of the time; stack traces stay whole. Vet is a part of `make verify`.
flags=("$@" "-ldflags=-s -w" -vet=off)
# Eight cases take a fifth of the time of all: `make test-slow` and `make test-long` run them.
slow=(--label-filter='!slow')
limit=75m
[ "${TEST_WINDOW:-}" != full ] || { limit=3h && slow=(); }

unit() {
	# shellcheck disable=SC2086 # one package a word
	bin/testfacts job unit go tool -modfile=hack/tools/go.mod gotestsum --format=pkgname --format-hide-empty-pkg \
		--jsonfile="$reports/unit.json" -- -timeout=30m "${flags[@]}" $packages
}
unit=passed first=passed second=passed third=passed shown="not looked at"
if [ "${ONLY:-}" = unit ]; then
	unit || unit=FAILED
	bin/testfacts print "$reports" || true
	[ $unit = passed ]
	exit
fi
[ "${ONLY:-}" = suites ] || unit >"$reports/unit.txt" 2>&1 &
units=$!
run suites-2 "${lane2[@]}" >"$reports/suites-2.txt" 2>&1 &
lane2=$!
run suites-3 "${lane3[@]}" >"$reports/suites-3.txt" 2>&1 &
lane3=$!
run suites-1 "${lane1[@]}" 2>&1 | tee "$reports/suites-1.txt" || first=FAILED
wait "$units" || unit=FAILED
wait "$lane2" || second=FAILED
wait "$lane3" || third=FAILED
cat "$reports"/suites-[23].txt
[ "${ONLY:-}" = suites ] || cat "$reports/unit.txt"
bin/testfacts print "$reports" || true
if [ "$unit$first$second$third${WARREN_RACE:-}${ONLY:-}" = passedpassedpassedpassed ]; then
	go run ./hack/speccoverage -enforce "$reports"/*.json && shown=passed || shown=FAILED
fi

# The last lines say what failed, and before them why, and how much room and memory the machine has left: whoever sees only them sees enough.
if [ "$unit$first$second$third" != passedpassedpassedpassed ]; then
	df -h . "${TMPDIR:-/tmp}" || true
	free -m 2>/dev/null || true
	echo 'what the first failures of the suites say:'
	grep -hF -A4 '[FAILED] ' "$reports"/suites-?.txt | grep -v -e '\[FAILED\] \[' -e '^--$' | cut -c1-300 | head -30 || true
fi
printf '\nunit tests       %s (%s)\n' "$unit" "$reports/unit.json"
printf 'suites, lane 1   %s (%s)\n' "$first" "$reports/suites-1.json"
printf 'suites, lane 2   %s (%s)\n' "$second" "$reports/suites-2.json"
printf 'suites, lane 3   %s (%s)\n' "$third" "$reports/suites-3.json"
printf 'cases shown      %s\n' "$shown"
grep -hF '=== FAIL' "$reports/unit.txt" 2>/dev/null | cut -c1-90 | head -5 || true
sed -n "s/$(printf '\033')\[[0-9;]*m//g"'; s/^.*\[FAIL\] /FAILED: /p' "$reports"/suites-?.txt | cut -c1-90 | sort -u | head -8 || true
[ "$unit$first$second$third" = passedpassedpassedpassed ] && [ "$shown" != FAILED ]
