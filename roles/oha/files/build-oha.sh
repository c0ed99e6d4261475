#!/bin/sh
# Runs the COMMAND that builds oha unless the executable exists: build-oha.sh EXECUTABLE TARGET LOG PACKAGES COMMAND...
# Writes EXECUTABLE, intermediate files into the directory TARGET, and the output into LOG. Debian's PACKAGES, in one word, have the
# cargo of the build; they are unpacked into TARGET and not installed. Empty: the cargo of this machine. SQLite and the allocator,
# which are C libraries, come from the distribution instead of being compiled.
set -eu
executable=$1 target=$2 log=$3 packages=$4
shift 4
[ ! -x "$executable" ] || exit 0
exec >"$log" 2>&1
mkdir -p "$target/rust"
if [ -n "$packages" ]; then
    cd "$target/rust"
    apt-get -qq -o APT::Sandbox::User=root download $packages
    for each in *.deb; do
        dpkg --extract "$each" .
        rm "$each"
    done
    PATH=$PWD/usr/bin:$PATH
    export LD_LIBRARY_PATH="$PWD/usr/lib/$(gcc -print-multiarch)"
fi
# The crate calls its allocator by prefixed names, so that both it and the C library's are linked. Rename all
# of its symbols, so that nothing else uses it.
jemalloc=$(gcc -print-file-name=libjemalloc_pic.a)
nm --extern-only --defined-only "$jemalloc" | awk 'NF == 3 { print $3, "_rjem_" $3 }' | sort -u >"$target/names"
objcopy --redefine-syms="$target/names" "$jemalloc" "$target/libjemalloc_oha.a"
export JEMALLOC_OVERRIDE="$target/libjemalloc_oha.a" LIBSQLITE3_SYS_USE_PKG_CONFIG=1
exec "$@"
