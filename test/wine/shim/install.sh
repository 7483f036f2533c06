#!/bin/bash
# Builds the shim and puts it into system32 of the Wine prefix; shim.c says what it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../env.sh"

library=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
x86_64-w64-mingw32-gcc -Wall -Wextra -Werror -O2 -shared -s -o "$library.new" "$here"/*.c "$here"/../standin/c/{link,diskshim}.c \
	-lws2_32 -ladvapi32 -lntdll
mv "$library.new" "$library"
