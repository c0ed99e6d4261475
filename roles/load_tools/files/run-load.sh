#!/bin/sh
# Offers one load from this client and leaves the raw files in a directory. Runs detached, as its own service, so
# that nobody needs to stay connected.
#
# Environment:
#   DIR              directory for the files
#   GENERATOR        oha, wrk2, wrk, python-sync, python-async or python-bounded
#   URL              URL to load
#   STATUS_URL       nginx's counters; empty if nginx is not in the path
#   HTTP2            true or false
#   HEADERS          request headers, one "Name: value" per line
#   CERTIFICATE      file of the server's certificate; empty if the URL is not https
#   BODY_SHA256      checksum of the answer's verified body
#   BODY_BYTES       its length in bytes
#   CONNECTIONS      open connections
#   THREADS          generator threads, one per core
#   RATE             requests per second; empty for the closed loop
#   WARMUP           seconds before the measurement
#   DURATION         seconds of the measurement; for the Python clients the maximum
#   REQUEST_TIMEOUT  seconds
#   KEEPALIVE        true, or false for a new connection per request
#   BESIDE_URL       URL that an extra client requests during the measurement, one request at a time; may be empty
#   REQUESTS         Python clients: number of requests
#   OPEN_FILES       Python clients: soft limit of open files
#   REUSE            Python clients: true or false, whether connections are reused
#   BEGIN_AT         several clients: start of the measurement, unix seconds by this client's clock; else empty
#   SETTLE           several clients: seconds between the end of the warm-up and BEGIN_AT
#
# Writes answer.body, the generator's output, nginx-before.txt and nginx-after.txt (if there are counters) and
# progress.txt (the current step). run.json is written last, in any case; error.txt only after a failure.
#
# The server is not trusted: the script reads no more of an answer than was verified, and stores messages of
# programs as printable text of limited length.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1

stage() { echo "$1" >progress.txt; }

finish() { # exit code, error message
    printf '{"started": %s, "finished": %s, "exit_code": %s}\n' \
        "${started:-0}" "${finished:-0}" "$1" >run.json.part
    [ -z "${2:-}" ] || printf '%s\n' "$2" | LC_ALL=C tr -c '\n\t -~' '?' | head -c 4000 >error.txt
    sync run.json.part
    mv run.json.part run.json
    exit "$1"
}

# Runs a program with its arguments, followed by the load's headers.
asking() { # command
    while IFS= read -r header; do
        [ -z "$header" ] || set -- "$@" -H "$header"
    done <<EOF
$HEADERS
EOF
    "$@"
}

until_begin() { # seconds before BEGIN_AT
    [ -z "$BEGIN_AT" ] ||
        sleep "$(awk "BEGIN { left = $BEGIN_AT - $1 - $(date +%s.%N); printf \"%.3f\", (left > 0 ? left : 0) }")"
}

counters() { # file name, curl options
    [ -n "$STATUS_URL" ] || return 0
    file=$1
    shift
    curl -sS --fail --max-time 5 "$@" -o "$file" "$STATUS_URL" 2>curl.err
}

# Read by the TLS libraries of curl, oha and the Python clients; wrk and wrk2 do not verify.
[ -z "$CERTIFICATE" ] || export SSL_CERT_FILE="$CERTIFICATE" REQUESTS_CA_BUNDLE="$CERTIFICATE"

oha_options='' wrk_options='' curl_options=--http1.1
[ "$HTTP2" = false ] || { oha_options=--http2 curl_options=--http2; }
[ "$KEEPALIVE" = true ] || { oha_options=--disable-keepalive wrk_options='-H Connection:close'; }

offer() { # seconds, base name of the output files
    # The duration, one request timeout and 30 s, in case the server stops answering.
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
        # wrk2 gives every thread the same number of connections and drops the remainder.
        threads=$THREADS
        while [ $((CONNECTIONS % threads)) != 0 ]; do threads=$((threads - 1)); done
        # Uses a pipe and no script, because a snap may not open or inherit files outside of a home directory.
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

time_wait() { # number of sockets in TIME-WAIT
    awk '$1 == "TCP:" { for (i = 2; i < NF; i += 2) if ($i == "tw") print $(i + 1) }' /proc/net/sockstat
}

case $GENERATOR in
python-*)
    # Ports that an earlier client used are in TIME-WAIT for 60 s and would be missing here. A few hundred
    # always are, for example of telemetry connections.
    stage "waiting for the ports of earlier connections"
    [ "$REUSE" = true ] && needed=$CONNECTIONS || needed=$REQUESTS
    # Not with the shell's read: it reads single bytes, and the kernel returns only the first.
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
# curl writes to stderr only if it fails.
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
# At this moment every client has finished its warm-up and none has started to measure.
until_begin "($SETTLE / 2)"
counters nginx-before.txt ||
    finish 6 "$STATUS_URL does not answer: $(cat curl.err)"
# The Python clients have no warm-up, and the telemetry needs one scrape before the load.
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
# From a port outside of the kernel's range: the client may have used up all of that range.
counters nginx-after.txt --local-port 600-1023 ||
    finish 7 "$STATUS_URL answers no longer: $(cat curl.err)"
rm -f curl.err
stage finished
[ "$code" = 0 ] || finish "$code" "$GENERATOR ended with $code: $(cat "$GENERATOR.err")"
finish 0
