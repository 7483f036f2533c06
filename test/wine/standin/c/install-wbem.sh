#!/bin/bash
# Builds csiwbem.dll and makes it the WMI of the Wine prefix: every program in it
# that creates CLSID_WbemLocator gets this library.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../env.sh"

library=$WINEPREFIX/drive_c/windows/system32/csiwbem.dll
x86_64-w64-mingw32-gcc -Wall -Wextra -Werror -O2 -shared -s -o "$library.new" "$here"/wbem*.c "$here/link.c" "$here/wbem.def" \
	-lole32 -loleaut32 -luuid -lwbemuuid -lws2_32 -ladvapi32
mv "$library.new" "$library"
"$wine" reg add 'HKLM\Software\Classes\CLSID\{4590F811-1D3A-11D0-891F-00AA004B2E24}\InprocServer32' \
	/ve /d 'C:\windows\system32\csiwbem.dll' /f >/dev/null
