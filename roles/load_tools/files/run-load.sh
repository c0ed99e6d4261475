#!/bin/sh
# Offers one load from this client and leaves the raw files in a directory. Run
# detached, as a service of its own, so that it needs nobody to stay connected.
#
# From the environment: DIR (where they go), GENERATOR (oha, wrk2, wrk, or python-sync, python-async,
# python-bounded), URL, STATUS_URL (nginx's counters; empty where it is not in the path), HTTP2 (true or
# false), HEADERS (a line "Name: value" each), CERTIFICATE (file of the server's; empty
# where the URL is not https), BODY_SHA256 and BODY_BYTES (of the answer's body, verified before),
# CONNECTIONS, THREADS (one a core), RATE (requests per second; empty for the closed loop), WARMUP and
# DURATION (s), REQUEST_TIMEOUT (s), KEEPALIVE (true, or false: a connection for each request), BESIDE_URL
# (asked for all the while by one more client, one request after another; may be empty). For the Python clients DURATION is the most that they may take, and
# REQUESTS (how many), OPEN_FILES (soft limit of the client) and REUSE (true or false: of connections) say
# what they do.
#
# What the server answers is not trusted: no more of it is read than was verified, and what programs say of it
# is kept as printable text that is not endless.
#
# Leaves answer.body, the generator's output, nginx-before.txt and nginx-after.txt where there are
# counters and, when all is over and whatever happened, run.json; progress.txt says what is under way.
#
# Of several clients that offer the load together each has in BEGIN_AT (unix seconds of its clock; else
# empty) when what is measured begins; the warm-up ends SETTLE seconds before.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1

stage() { echo "$1" >progress.txt; }

finish() { # exit code, what went wrong
    printf '{"started": %s, "finished": %s, "exit_code": %s}\n' \
        "${started:-0}" "${finished:-0}" "$1" >run.json.part
    [ -z "${2:-}" ] || printf '%s\n' "$2" | LC_ALL=C tr -c '\n\t -~' '?' | head -c 4000 >error.txt
    sync run.json.part
    mv run.json.part run.json
    exit "$1"
}

# A program with its arguments, and the load's headers after them.
asking() { # command
    while IFS= read -r header; do
        [ -z "$header" ] || set -- "$@" -H "$header"
    done <<EOF
$HEADERS
EOF
    "$@"
}

until_begin() { # how many seconds before it
    [ -z "$BEGIN_AT" ] ||
        sleep "$(awk "BEGIN { left = $BEGIN_AT - $1 - $(date +%s.%N); printf \"%.3f\", (left > 0 ? left : 0) }")"
}

counters() { # name of the file, options of curl
    [ -n "$STATUS_URL" ] || return 0
    file=$1
    shift
    curl -sS --fail --max-time 5 "$@" -o "$file" "$STATUS_URL" 2>curl.err
}

# Where the TLS libraries of curl, oha and the Python clients look; wrk and wrk2 verify nothing.
[ -z "$CERTIFICATE" ] || export SSL_CERT_FILE="$CERTIFICATE" REQUESTS_CA_BUNDLE="$CERTIFICATE"

oha_options='' wrk_options='' curl_options=--http1.1
[ "$HTTP2" = false ] || { oha_options=--http2 curl_options=--http2; }
[ "$KEEPALIVE" = true ] || { oha_options=--disable-keepalive wrk_options='-H Connection:close'; }

offer() { # seconds, name of the output files
    # Its own deadline and half a minute more, for a server that answers no longer.
    limit=$(awk "BEGIN { print $1 + $REQUEST_TIMEOUT + 30 }")
    case $GENERATOR in
    oha)
        asking timeout "$limit" oha --no-tui --no-color --output-format json -o "$2.json" \
            --db-url "$2.sqlite" -z "$1s" -w -q "$RATE" --latency-correction \
            $oha_options -c "$CONNECTIONS" --worker-threads "$THREADS" -t "${REQUEST_TIMEOUT}s" "$URL" 2>"$2.err"
        ;;
    wrk)
        asking timeout "$limit" wrk -t "$THREADS" -c "$CONNECTIONS" -d "$1s" --latency \
            --timeout "${REQUEST_TIMEOUT}s" $wrk_options -s /usr/local/lib/loadlab/report.lua "$URL" \
            >"$2.txt" 2>"$2.err"
        ;;
    wrk2)
        # As many connections on each thread: it would open fewer than asked for otherwise.
        threads=$THREADS
        while [ $((CONNECTIONS % threads)) != 0 ]; do threads=$((threads - 1)); done
        # Through a pipe and without a script: a snap may not open or inherit files that are not in a home.
        text=$(PATH=$PATH:/snap/bin asking timeout "$limit" wrk2 -t "$threads" -c "$CONNECTIONS" -d "$1s" -R "$RATE" \
            --latency --u_latency --timeout "${REQUEST_TIMEOUT}s" $wrk_options "$URL" 2>&1)
        ended=$?
        printf '%s\n' "$text" >"$2.txt"
        [ "$ended" = 0 ] || printf '%s\n' "$text" >"$2.err"
        return "$ended"
        ;;
    python-*)
        asking timeout "$limit" /opt/loadlab/clients/venv/bin/python /opt/loadlab/clients/client.py \
            "${GENERATOR#python-}" "$URL" --requests "$REQUESTS" --connections "$CONNECTIONS" \
            --open-files "$OPEN_FILES" --reuse "$REUSE" --body-bytes "$BODY_BYTES" \
            --timeout "$REQUEST_TIMEOUT" --output "$2.json.gz" --progress progress.txt 2>"$2.err"
        ;;
    *)
        echo "generator '$GENERATOR' is not one of oha, wrk2, wrk, python-sync, python-async," \
            "python-bounded" >"$2.err"
        return 2
        ;;
    esac
}

time_wait() { # local ports that closed connections still hold
    awk '$1 == "TCP:" { for (i = 2; i < NF; i += 2) if ($i == "tw") print $(i + 1) }' /proc/net/sockstat
}

case $GENERATOR in
python-*)
    # Ports that one before used up would be found missing by the next: the kernel holds them for
    # 60 s. A few hundred are always held, by the telemetry's connections among others.
    stage "waiting for the ports of earlier connections"
    [ "$REUSE" = true ] && needed=$CONNECTIONS || needed=$REQUESTS
    # Whole at once: the shell's own read asks byte by byte, and the kernel answers the first only.
    range=$(cat /proc/sys/net/ipv4/ip_local_port_range)
    all=$((${range##*[!0-9]} - ${range%%[!0-9]*} + 1))
    for try in $(seq 70); do
        free=$((all - $(time_wait)))
        [ "$free" -lt "$needed" ] && [ "$free" -lt $((all - 300)) ] || break
        sleep 1
    done
    ;;
esac

stage verifying
# What curl says here it says because it failed.
asking curl -sS $curl_options --max-time "$REQUEST_TIMEOUT" -o - "$URL" 2>curl.err |
    head -c "$((BODY_BYTES + 1))" >answer.body
[ "$(wc -c <answer.body)" -le "$BODY_BYTES" ] ||
    finish 4 "$URL answers otherwise than when it was verified: with more than $BODY_BYTES bytes"
[ ! -s curl.err ] || finish 3 "$URL does not answer: $(cat curl.err)"
sum=$(sha256sum <answer.body | cut -d' ' -f1)
[ "$sum" = "$BODY_SHA256" ] ||
    finish 4 "$URL answers otherwise than when it was verified: sha256 $sum, not $BODY_SHA256"

if [ "$WARMUP" != 0 ]; then
    stage "warming up"
    until_begin "($WARMUP + $SETTLE)"
    offer "$WARMUP" warmup || finish 5 "the warm-up failed: $(cat warmup.err)"
    rm -f warmup.*
fi

stage measuring
# Every client's warm-up is over then, and none has begun.
until_begin "($SETTLE / 2)"
counters nginx-before.txt ||
    finish 6 "$STATUS_URL does not answer: $(cat curl.err)"
# They have no warm-up, and the telemetry needs a scrape before the load.
case $GENERATOR in python-*) sleep 1.5 ;; esac
until_begin 0
beside=''
if [ -n "$BESIDE_URL" ]; then
    while :; do asking curl -sS $curl_options --max-time "$REQUEST_TIMEOUT" -o /dev/null "$BESIDE_URL" 2>>beside.err; done &
    beside=$!
fi
started=$(date +%s.%N)
offer "$DURATION" "$GENERATOR"
code=$?
finished=$(date +%s.%N)
[ -z "$beside" ] || kill "$beside"
# From a port that the kernel gives to nobody: the client may have used up all others.
counters nginx-after.txt --local-port 600-1023 ||
    finish 7 "$STATUS_URL answers no longer: $(cat curl.err)"
rm -f curl.err
stage finished
[ "$code" = 0 ] || finish "$code" "$GENERATOR ended with $code: $(cat "$GENERATOR.err")"
finish 0
