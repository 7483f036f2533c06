#!/bin/bash
# Makes the Wine prefix in which the Windows binaries are tested: a fresh
# prefix plus the library that Go needs. A prefix made by this very script is kept.
#
# Needs: wine64, x86_64-w64-mingw32-gcc. Installs nothing on the machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/env.sh"

stamp=$WINEPREFIX/csi-windows.stamp
want=$(cat "$here/prefix.sh" "$here/shim/bcryptprimitives.c" | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
	exit 0
fi
"$wineserver" -k 2>/dev/null || true
rm -rf "$WINEPREFIX"
mkdir -p "$WINEPREFIX"
timeout 300 "$wine" wineboot -i >"$WINEPREFIX/wineboot.log" 2>&1 || { cat "$WINEPREFIX/wineboot.log"; exit 1; }
"$wineserver" -w
x86_64-w64-mingw32-gcc -O2 -shared -s -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" \
	"$here/shim/bcryptprimitives.c" -ladvapi32
echo "$want" >"$stamp"
