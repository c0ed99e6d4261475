#!/bin/sh
# Runs the COMMAND that builds oha, unless the executable is there: build-oha.sh EXECUTABLE TARGET LOG COMMAND...
# What is C in it comes from the distribution instead of a compiler: SQLite and the allocator.
set -eu
executable=$1 target=$2 log=$3
shift 3
[ ! -x "$executable" ] || exit 0
exec >"$log" 2>&1
mkdir -p "$target"
# The crate calls its allocator by names with a prefix of its own, beside the C library's. All names get it, so that
# nothing else in the executable is allocated there.
jemalloc=$(gcc -print-file-name=libjemalloc_pic.a)
nm --extern-only --defined-only "$jemalloc" | awk 'NF == 3 { print $3, "_rjem_" $3 }' | sort -u >"$target/names"
objcopy --redefine-syms="$target/names" "$jemalloc" "$target/libjemalloc_oha.a"
export JEMALLOC_OVERRIDE="$target/libjemalloc_oha.a" LIBSQLITE3_SYS_USE_PKG_CONFIG=1
exec "$@"
