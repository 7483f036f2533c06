#!/bin/bash
# Builds virtdisk.dll and puts it into system32 of the Wine prefix, in the place of Wine's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../env.sh"

built=$(mktemp --suffix=.dll)
trap 'rm -f "$built"' EXIT
x86_64-w64-mingw32-gcc -Wall -Wextra -Werror -O2 -shared -s -o "$built" "$here/virtdisk.c" "$here/link.c" -lws2_32 -ladvapi32
install -m 644 "$built" "$WINEPREFIX/drive_c/windows/system32/virtdisk.dll"
