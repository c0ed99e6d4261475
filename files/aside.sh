# shellcheck shell=sh
# Puts the owner's file or folder aside, beside the lab's that takes its place, and takes it back with its owner, mode and
# time.
ASIDE=.before-loadlab

put_aside() { # PATH
    [ ! -e "$1" ] || mv -T "$1" "$1$ASIDE"
}

is_aside() { # PATH
    [ -e "$1$ASIDE" ]
}

take_back() { # PATH
    rm -rf "$1" && mv -T "$1$ASIDE" "$1"
}
