#!/bin/sh
# Offers one load from this client and leaves the raw files in a directory. Runs detached, as its own service, so
# that nobody needs to stay connected.
#
# Environment:
#   DIR              directory for the files
#   GENERATOR        its name, which its files have
#   WARM_UP          command that offers the load before the measurement, quoted for a shell, with files named
#                    "warmup"; empty for no warm-up
#   MEASURE          command that offers the measured load, with files named after the generator
#   SATURATE         command that offers a closed loop after the measured load, with files named "saturation"; may be empty
#   PAUSE_AFTER      seconds between the two
#   PRINTS           empty if the command writes its output itself; yes if it prints it
#   URL              URL to load
#   STATUS_URL       the reverse proxy's counters; empty if there is none in the path
#   LANES            stacks that the load measures side by side, in place of URL and STATUS_URL: a line "folder URL
#                    STATUS_URL" for each, the last may be missing; empty if the load is of one stack
#   HTTP2            true or false
#   HEADERS          request headers, one "Name: value" per line
#   CERTIFICATE      file of the server's certificate; empty if the URL is not https
#   METHOD, BODY     of the requests; the body may be empty
#   STATUS           status of the verified answer
#   BODY_SHA256      checksum of its body; empty if bodies differ
#   BODY_BYTES       its length in bytes; empty if that differs
#   BODY_MOST        bytes that are read of a body
#   WARMUP           seconds of the warm-up
#   MIX              of a mix, for each kind of request: its URL, HEADERS, METHOD, BODY, STATUS and BODY_..., quoted for a
#                    shell, and "verify FILE"; empty where there is one kind
#   REQUEST_TIMEOUT  seconds
#   PORTS            number of local ports that the load needs at once; empty if the client is not the subject
#   PAUSE            seconds between the counters and the measurement
#   BESIDE_URL       URL that an extra client requests during the measurement, one request at a time; may be empty
#   BEGIN_AT         several clients: start of the measurement, unix seconds by this client's clock; else empty
#   SETTLE           several clients: seconds between the end of the warm-up and BEGIN_AT
#
# Writes answer.body, or of each kind of a mix answer-NAME.body; the generator's output; reverse_proxy-before.txt and
# reverse_proxy-after.txt if there are counters, of several stacks in the folder of each; progress.txt, the current step.
# run.json is written last, in any case; error.txt only after a failure.
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

# Runs a program with its arguments, followed by the requests' headers.
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

[ -n "$LANES" ] || LANES=". $URL $STATUS_URL"

counters() { # file name, curl options
    file=$1
    shift
    while read -r folder url status; do
        [ -n "$status" ] || continue
        mkdir -p "$folder" && STATUS_URL=$status || return
        curl -sS --fail --max-time 5 "$@" -o "$folder/$file" "$status" 2>curl.err || return
    done <<EOF
$LANES
EOF
}

# Read by the TLS libraries of curl and of the generators that verify.
[ -z "$CERTIFICATE" ] || export SSL_CERT_FILE="$CERTIFICATE" REQUESTS_CA_BUNDLE="$CERTIFICATE"

curl_options=--http1.1
[ "$HTTP2" = false ] || curl_options=--http2

# Programs of snaps.
PATH=$PATH:/snap/bin

offer() { # command, base name of the output files
    eval "set -- \"\$2\" $1"
    base=$1
    shift
    if [ -z "$PRINTS" ]; then
        "$@" 2>"$base.err"
        return
    fi
    # Through pipes, one for its output and one for its errors: a snap may not inherit a file.
    ended=$({
        { { "$@" 3>&- 4>&-; echo "$?" >&4; } 2>&3 | cat >"$base.txt"; } 3>&1 | cat >"$base.err"
    } 4>&1)
    return "$ended"
}

time_wait() { # number of sockets in TIME-WAIT
    awk '$1 == "TCP:" { for (i = 2; i < NF; i += 2) if ($i == "tw") print $(i + 1) }' /proc/net/sockstat
}

if [ -n "$PORTS" ]; then
    # Ports that an earlier client used are in TIME-WAIT for 60 s and would be missing here. A few hundred
    # always are, for example of telemetry connections.
    stage "waiting for the ports of earlier connections"
    # Not with the shell's read: it reads single bytes, and the kernel returns only the first.
    range=$(cat /proc/sys/net/ipv4/ip_local_port_range)
    all=$((${range##*[!0-9]} - ${range%%[!0-9]*} + 1))
    for try in $(seq 70); do
        free=$((all - $(time_wait)))
        [ "$free" -lt "$PORTS" ] && [ "$free" -lt $((all - 300)) ] || break
        sleep 1
    done
fi

verify() { # file for the body
    file=$1
    set --
    [ -z "$BODY" ] || set -- --data-raw "$BODY"
    # Of an answer, stderr has the three digits of the status and nothing else.
    asking curl -sS $curl_options --request "$METHOD" "$@" --max-time "$REQUEST_TIMEOUT" -w '%{stderr}%{http_code}' -o - "$URL" \
        2>curl.err </dev/null | head -c "$((BODY_MOST + 1))" >"$file"
    length=$(wc -c <"$file")
    [ "$length" -le "$BODY_MOST" ] ||
        finish 4 "$URL answers otherwise than when it was verified: with more than $BODY_MOST bytes"
    [ "$(wc -c <curl.err)" = 3 ] || finish 3 "$URL does not answer: $(cat curl.err)"
    sum=$(sha256sum <"$file" | cut -d' ' -f1)
    answer="status $(cat curl.err), sha256 $sum, $length bytes"
    verified="status $STATUS, sha256 ${BODY_SHA256:-$sum}, ${BODY_BYTES:-$length} bytes"
    [ "$answer" = "$verified" ] || finish 4 "$URL answers otherwise than when it was verified: $answer, not $verified"
}

stage verifying
if [ -n "$MIX" ]; then
    # In a shell of its own, with which the variables of a kind end.
    (eval "$MIX") || exit
else
    while read -r folder URL status; do verify answer.body; done <<EOF
$LANES
EOF
fi

if [ -n "$WARM_UP" ]; then
    stage "warming up"
    until_begin "($WARMUP + $SETTLE)"
    offer "$WARM_UP" warmup || finish 5 "the warm-up failed: $(cat warmup.err)"
    rm -f warmup.* ./*/warmup.*
fi

stage measuring
# At this moment every client has finished its warm-up and none has started to measure.
until_begin "($SETTLE / 2)"
counters reverse_proxy-before.txt ||
    finish 6 "$STATUS_URL does not answer: $(cat curl.err)"
[ "$PAUSE" = 0 ] || sleep "$PAUSE"
until_begin 0
beside=''
if [ -n "$BESIDE_URL" ]; then
    while :; do asking curl -sS $curl_options --max-time "$REQUEST_TIMEOUT" -o /dev/null "$BESIDE_URL" 2>>beside.err; done &
    beside=$!
fi
started=$(date +%s.%N)
offer "$MEASURE" "$GENERATOR"
code=$?
finished=$(date +%s.%N)
[ -z "$beside" ] || kill "$beside"
# From a port outside of the kernel's range: the client may have used up all of that range.
counters reverse_proxy-after.txt --local-port 600-1023 ||
    finish 7 "$STATUS_URL answers no longer: $(cat curl.err)"
rm -f curl.err
[ "$code" = 0 ] || finish "$code" "$GENERATOR ended with $code: $(cat "$GENERATOR.err")"
if [ -n "$SATURATE" ]; then
    stage "measuring the closed loop"
    sleep "$PAUSE_AFTER"
    offer "$SATURATE" saturation || finish 8 "the closed loop failed: $(cat saturation.err)"
fi
stage finished
finish 0
