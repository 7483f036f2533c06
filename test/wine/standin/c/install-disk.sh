#!/bin/bash
# Builds csidisk.sys and puts it into the Wine prefix as a kernel driver that the
# service manager starts on demand (`sc.exe start csidisk`). A driver that runs is stopped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../env.sh"

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc=x86_64-w64-mingw32-gcc
flags=(-Wall -Wextra -Werror -O2)
"$cc" "${flags[@]}" -I/usr/share/mingw-w64/include/ddk -c -o "$build/disk.o" "$here/disk.c"
for part in diskwork link; do
	"$cc" "${flags[@]}" -c -o "$build/$part.o" "$here/$part.c"
done
"$cc" -nostdlib -s -Wl,--subsystem,native -Wl,--dynamicbase -Wl,--entry,DriverEntry -o "$build/csidisk.sys" \
	"$build"/*.o -lntoskrnl -lws2_32 -ladvapi32 -lkernel32 -lmsvcrt

"$wine" sc.exe stop csidisk >/dev/null 2>&1 || true
install -m 644 "$build/csidisk.sys" "$WINEPREFIX/drive_c/windows/system32/drivers/csidisk.sys"
"$wine" sc.exe query csidisk >/dev/null 2>&1 ||
	"$wine" sc.exe create csidisk type= kernel start= demand binPath= 'C:\windows\system32\drivers\csidisk.sys' >/dev/null
