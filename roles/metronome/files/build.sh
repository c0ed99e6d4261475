#!/bin/sh
# Builds metronome unless the executable exists: build.sh CARGO SOURCES EXECUTABLE [FEATURES]
# CARGO: directory of cargo. Writes EXECUTABLE whole or not at all, and beside it intermediate files and build.log. It is
# static, so that it runs whatever the C library of a client is.
set -eu
cargo=$1 sources=$2 executable=$3 features=${4-}
folder=$(dirname "$executable")
[ ! -x "$executable" ] || exit 0
exec >"$folder/build.log" 2>&1
export PATH="$cargo:$PATH" CARGO_TARGET_DIR="$folder/target" RUSTFLAGS="-C target-feature=+crt-static" OPENSSL_STATIC=1
# The flags are then for the executable alone: the compiler cannot load macros that are static.
target=$(rustc -vV | sed -n 's/^host: //p')
# Of a host without internet, the registry that the controller uses.
set -- ${LAB_CARGO_INDEX:+--config "source.crates-io.replace-with='lab'" --config "source.lab.registry='$LAB_CARGO_INDEX'"}
cargo build --release --locked --manifest-path "$sources/Cargo.toml" --target "$target" --features "$features" "$@"
mv "$folder/target/$target/release/metronome" "$executable"
rm -r "$folder/target"
