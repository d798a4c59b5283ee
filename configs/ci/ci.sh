#!/bin/sh
# Runs mqttload, compares the result with a baseline kept in a directory, and
# exits with mqttload's exit code: 0 ok, 5 delivery broken, 6 gate failed,
# 7 regression, 8 not comparable. The arguments are those of "mqttload run".
# The default is quick --launches 5, because a single launch does not show how
# much launches differ:
#
#   BENCH_KEEP=true sh ci.sh nightly.yaml --launches 5 --url mqtt://broker:1883 --fail-if 'p99 > 5ms @ qos=1'
#
#   BENCH_BASELINE    directory of the baseline; it must outlive the job (default .mqttload)
#   BENCH_REPORT      directory for the report (default mqttload-report)
#   BENCH_REGRESSION  how much slower a case may be (default 5%)
#   BENCH_KEEP        if true, a run that passed becomes the baseline; for the main branch
set -u
baseline=${BENCH_BASELINE:-.mqttload}/baseline.json.gz
report=${BENCH_REPORT:-mqttload-report}
[ $# -gt 0 ] || set -- quick --launches 5
mkdir -p "$report" "$(dirname "$baseline")" || exit 1

if [ -f "$baseline" ]; then
	set -- "$@" --baseline "$baseline" --max-regression "${BENCH_REGRESSION:-5%}"
else
	echo "warning: there is no $baseline yet: nothing is compared" >&2
fi
mqttload run "$@" --output "$report/report.json.gz" --output "$report/report.html" --output junit="$report/junit.xml"
code=$?

if [ $code -eq 0 ] && [ "${BENCH_KEEP:-false}" = true ]; then
	# Renamed, so that a parallel job never reads half a file.
	cp "$report/report.json.gz" "$baseline.new" && mv "$baseline.new" "$baseline" || exit 1
	echo "this run is the new baseline: $baseline" >&2
fi
exit $code
