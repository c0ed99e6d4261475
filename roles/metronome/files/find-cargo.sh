#!/bin/sh
# Finds a cargo that can build metronome on this machine: find-cargo.sh LIBRARY PACKAGE...
# LIBRARY: pkg-config's name of the library that the build links, or empty. PACKAGE...: Debian packages that the build
# needs besides cargo. Prints the directory of cargo and the packages to install first, and nothing where there is no
# way.
set -u
library=$1
shift

# Whether the directory $1 has a Rust from 1.63 on, with a cargo from 1.$2 on.
has_cargo() {
    for each in "cargo $2" "rustc 63"; do
        # A proxy of rustup without a toolchain has no version.
        "$1/${each% *}" --version 2>/dev/null |
            awk -v minor="${each#* }" '{ split($2, v, "."); new = v[1] > 1 || v[2] >= minor } END { exit !new }' || return
    done
}

links() {
    tried=$(mktemp) && flags=
    { [ -z "$library" ] || flags=$(pkg-config --static --libs "$library" 2>/dev/null); } &&
        echo 'int main(void) { return 0; }' | cc -static -x c - -x none -o "$tried" $flags 2>/dev/null
    linked=$?
    rm -f "$tried"
    return $linked
}

may_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

# The version that apt would install of a package, if it would remove no other.
offered() {
    said=$(LC_ALL=C apt-get --simulate install "$1" 2>/dev/null) || return
    echo "$said" | grep -q '^Remv ' && return
    echo "$said" | sed -n "s/^Inst $1 .*(\([0-9.]*\).*/\1/p"
}

missing=$*
links && missing=
if [ -n "$missing" ] && ! may_install; then exit; fi
# From 1.68 on it reads the index by HTTP. Before, it clones the index, which takes minutes.
for minor in 68 63; do
    IFS=:
    for directory in $PATH; do
        IFS=' '
        if has_cargo "$directory" $minor; then
            echo "$directory" $missing
            exit
        fi
    done
    IFS=' '
    [ $minor = 68 ] && may_install || continue
    # Debian's newer Rust, where its Rust is older.
    for package in cargo cargo-web; do
        version=$(offered $package)
        if [ -n "$version" ] && dpkg --compare-versions "$version" ge 1.68; then
            echo /usr/bin "$@" $package
            exit
        fi
    done
done
