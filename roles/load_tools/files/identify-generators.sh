# shellcheck shell=sh
# Prints, of each load generator that is in the PATH: its name, path, SHA-256, revision of its snap (or nothing), whether
# it has proven itself here (yes or no) and its version, separated by tabs. Changes nothing.
# Reads GENERATORS: for each "name=program=snap", separated by spaces; the snap may be empty.
# loadlab/generators/load/proof.py parses the output.
PATH=$PATH:/snap/bin
for generator in $GENERATORS; do
    name=${generator%%=*} snap=${generator##*=}
    program=${generator#*=} program=${program%=*}
    path=$(command -v "$program") || continue
    # What the lab itself runs has no rights; a snap has a sandbox of its own and starts for users with a home only.
    revision='' file=$path as='runuser -u nobody --'
    case $path in
    /snap/bin/*)
        # The program of a snap is a link to its launcher.
        revision=$(readlink "/snap/$snap/current") file=/var/lib/snapd/snaps/${snap}_$revision.snap as=
        ;;
    esac
    sha256=$(sha256sum <"$file") sha256=${sha256%% *}
    proven=no
    [ ! -e "/var/lib/loadlab-proven/$sha256" ] || proven=yes
    version=$($as timeout 20 "$path" --version 2>&1 </dev/null | head -n 1 | LC_ALL=C tr -cd ' -~' | head -c 200)
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$path" "$sha256" "$revision" "$proven" "$version"
done
