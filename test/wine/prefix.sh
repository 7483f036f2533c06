#!/bin/bash
# Makes the Wine prefix in which the Windows binaries are tested: a fresh
# prefix, the library that Go needs (shim), and the stand-ins for the parts of
# Windows that Wine lacks (standin/c/install-*.sh). What is up to date is kept:
# a change of one stand-in builds that one again, in the prefix as it is.
#
# Needs: wine64, x86_64-w64-mingw32-gcc. Installs nothing on the machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/env.sh"
shopt -s nullglob
c=$here/standin/c

# once NAME COMMAND INPUT...: runs the command unless it has run with just these
# inputs in this prefix.
once() {
	local stamp=$WINEPREFIX/csi-windows.$1.stamp command=$2 want
	shift 2
	want=$(cat "$@" | sha256sum)
	if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then return; fi
	rm -f "$stamp"
	"$command"
	echo "$want" >"$stamp"
}

make_prefix() {
	"$wineserver" -k 2>/dev/null || true
	rm -rf "$WINEPREFIX"
	mkdir -p "$WINEPREFIX"
	timeout 300 "$wine" wineboot -i >"$WINEPREFIX/wineboot.log" 2>&1 || { cat "$WINEPREFIX/wineboot.log"; exit 1; }
	"$wineserver" -w
}

once prefix make_prefix "$here/env.sh"
once shim "$here/shim/install.sh" "$here"/shim/* "$c"/link.* "$c"/diskshim.* "$c/disk.h"
for install in "$c"/install-*.sh; do
	name=${install##*/install-}
	name=${name%.sh}
	once "standin-$name" "$install" "$install" "$c/$name"* "$c"/link.*
done
