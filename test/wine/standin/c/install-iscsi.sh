#!/bin/bash
# Builds csiiscsi.exe and registers it in the Wine prefix as the service MSiSCSI, under
# Windows' display name, started on demand. One that runs is stopped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../env.sh"

built=$(mktemp --suffix=.exe)
trap 'rm -f "$built"' EXIT
x86_64-w64-mingw32-gcc -Wall -Wextra -Werror -O2 -s -municode -o "$built" "$here/iscsisvc.c" "$here/link.c" -lws2_32 -ladvapi32

"$wine" sc.exe stop MSiSCSI >/dev/null 2>&1 || true
install -m 755 "$built" "$WINEPREFIX/drive_c/windows/system32/csiiscsi.exe"
"$wine" sc.exe query MSiSCSI >/dev/null 2>&1 ||
	"$wine" sc.exe create MSiSCSI start= demand DisplayName= 'Microsoft iSCSI Initiator Service' \
		binPath= 'C:\windows\system32\csiiscsi.exe' >/dev/null
