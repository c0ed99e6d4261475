#!/bin/sh
# Offers one load from this client and leaves the raw files in a directory. Run
# detached, as a service of its own, so that it needs nobody to stay connected.
#
# From the environment: DIR (where they go), GENERATOR (oha or wrk), URL, STATUS_URL (counters),
# BODY_SHA256 (of the answer's body, verified before), CONNECTIONS, THREADS (one a core), RATE (requests
# per second; empty for the closed loop), WARMUP and DURATION (s), REQUEST_TIMEOUT (s).
#
# Leaves answer.body, the generator's output, nginx-before.txt, nginx-after.txt and, when all
# is over and whatever happened, run.json; progress.txt says what is under way.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1

stage() { echo "$1" >progress.txt; }

finish() { # exit code, what went wrong
    printf '{"started": %s, "finished": %s, "exit_code": %s}\n' \
        "${started:-0}" "${finished:-0}" "$1" >run.json.part
    [ -z "${2:-}" ] || echo "$2" >error.txt
    sync run.json.part
    mv run.json.part run.json
    exit "$1"
}

offer() { # seconds, name of the output files
    # Its own deadline and half a minute more, for a server that answers no longer.
    limit=$(awk "BEGIN { print $1 + $REQUEST_TIMEOUT + 30 }")
    case $GENERATOR in
    oha)
        timeout "$limit" oha --no-tui --no-color --output-format json -o "$2.json" \
            --db-url "$2.sqlite" -z "$1s" -w -q "$RATE" --latency-correction \
            -c "$CONNECTIONS" --worker-threads "$THREADS" -t "${REQUEST_TIMEOUT}s" "$URL" 2>"$2.err"
        ;;
    wrk)
        timeout "$limit" wrk -t "$THREADS" -c "$CONNECTIONS" -d "$1s" --latency \
            --timeout "${REQUEST_TIMEOUT}s" -s /usr/local/lib/loadlab/report.lua "$URL" \
            >"$2.txt" 2>"$2.err"
        ;;
    *)
        echo "generator '$GENERATOR' is not one of oha, wrk" >"$2.err"
        return 2
        ;;
    esac
}

stage verifying
curl -sS --max-time "$REQUEST_TIMEOUT" -o answer.body "$URL" 2>curl.err ||
    finish 3 "$URL does not answer: $(cat curl.err)"
sum=$(sha256sum <answer.body | cut -d' ' -f1)
[ "$sum" = "$BODY_SHA256" ] ||
    finish 4 "$URL answers otherwise than when it was verified: sha256 $sum, not $BODY_SHA256"

if [ "$WARMUP" != 0 ]; then
    stage "warming up"
    offer "$WARMUP" warmup || finish 5 "the warm-up failed: $(cat warmup.err)"
    rm -f warmup.*
fi

stage measuring
curl -sS --max-time 5 -o nginx-before.txt "$STATUS_URL" 2>curl.err ||
    finish 6 "$STATUS_URL does not answer: $(cat curl.err)"
started=$(date +%s.%N)
offer "$DURATION" "$GENERATOR"
code=$?
finished=$(date +%s.%N)
curl -sS --max-time 5 -o nginx-after.txt "$STATUS_URL" 2>curl.err ||
    finish 7 "$STATUS_URL answers no longer: $(cat curl.err)"
rm -f curl.err
stage finished
[ "$code" = 0 ] || finish "$code" "$GENERATOR ended with $code: $(cat "$GENERATOR.err")"
finish 0
