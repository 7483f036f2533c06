package main

import (
	"context"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The headers of the Windows SDK as mingw-w64 has them, of a Windows of Server
// 2019's age; the number after 0x0A00 is that of the header minwinbase.h.
const sdkHeaders = `
#define _WIN32_WINNT 0x0A000002
#define NTDDI_VERSION 0x0A000006
#define INITGUID
#define COBJMACROS
#include <windows.h>
#include <winternl.h>
#include <winsvc.h>
#include <accctrl.h>
#include <diskguid.h>
#include <ntddscsi.h>
#include <virtdisk.h>
#include <shlobj.h>
#include <wbemcli.h>
`

// documented is what not every mingw-w64 has, 10 (Debian 12) above all. The names
// are covered, so that a header that has them one day does no harm.
//
// Sources: the pages of IOCTL_DISK_GET_DISK_ATTRIBUTES,
// IOCTL_DISK_SET_DISK_ATTRIBUTES, FILE_DISPOSITION_INFORMATION_EX and
// CREATE_VIRTUAL_DISK_PARAMETERS, "System Error Codes"; ntdddisk.h and ntddk.h of the
// Windows kits.
const documented = `
typedef struct { DWORD Version; DWORD Reserved1; DWORDLONG Attributes; } documented_get_disk_attributes;
#define GET_DISK_ATTRIBUTES documented_get_disk_attributes
typedef struct {
	DWORD Version; BOOLEAN Persist; BYTE Reserved1[3]; DWORDLONG Attributes; DWORDLONG AttributesMask; DWORD Reserved2[4];
} documented_set_disk_attributes;
#define SET_DISK_ATTRIBUTES documented_set_disk_attributes
typedef struct {
	CREATE_VIRTUAL_DISK_VERSION Version;
	union {
		struct {
			GUID UniqueId; ULONGLONG MaximumSize; ULONG BlockSizeInBytes; ULONG SectorSizeInBytes; PCWSTR ParentPath; PCWSTR SourcePath;
		} Version1;
		struct {
			GUID UniqueId; ULONGLONG MaximumSize; ULONG BlockSizeInBytes; ULONG SectorSizeInBytes; ULONG PhysicalSectorSizeInBytes;
			PCWSTR ParentPath; PCWSTR SourcePath; OPEN_VIRTUAL_DISK_FLAG OpenFlags; VIRTUAL_STORAGE_TYPE ParentVirtualStorageType;
			VIRTUAL_STORAGE_TYPE SourceVirtualStorageType; GUID ResiliencyGuid;
		} Version2;
	};
} documented_create_virtual_disk_parameters;
#define CREATE_VIRTUAL_DISK_PARAMETERS documented_create_virtual_disk_parameters
#undef IOCTL_DISK_GET_DISK_ATTRIBUTES
#define IOCTL_DISK_GET_DISK_ATTRIBUTES CTL_CODE(IOCTL_DISK_BASE, 0x3c, METHOD_BUFFERED, FILE_ANY_ACCESS)
#undef IOCTL_DISK_SET_DISK_ATTRIBUTES
#define IOCTL_DISK_SET_DISK_ATTRIBUTES CTL_CODE(IOCTL_DISK_BASE, 0x3d, METHOD_BUFFERED, FILE_READ_ACCESS | FILE_WRITE_ACCESS)
#undef DISK_ATTRIBUTE_OFFLINE
#define DISK_ATTRIBUTE_OFFLINE 1
#undef DISK_ATTRIBUTE_READ_ONLY
#define DISK_ATTRIBUTE_READ_ONLY 2
#undef FILE_DISPOSITION_DELETE
#define FILE_DISPOSITION_DELETE 1
#undef FILE_DISPOSITION_POSIX_SEMANTICS
#define FILE_DISPOSITION_POSIX_SEMANTICS 2
#undef FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE
#define FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE 0x10
#undef ERROR_NO_SUCH_DEVICE
#define ERROR_NO_SUCH_DEVICE 433
`

// helpers shorten expressions: the place of a function in the table of a COM
// interface.
const helpers = `
#define SLOT(interface, function) (offsetof(interface##Vtbl, function) / sizeof(void *))
`

// driverHeaders cannot be had beside those of the SDK.
const driverHeaders = `
#define _WIN32_WINNT 0x0A00
#include <ntifs.h>
`

// unit is one file of C: headers and the names to be found only there.
type unit struct {
	headers string
	names   []string
}

func units() []unit {
	return []unit{
		{sdkHeaders + documented + helpers, nil},
		{driverHeaders, []string{
			"REPARSE_DATA_BUFFER", "SE_BACKUP_PRIVILEGE", "SE_RESTORE_PRIVILEGE", "SE_CREATE_SYMBOLIC_LINK_PRIVILEGE",
		}},
	}
}

// of reports whether an expression is to be asked of the unit. The first unit has
// all that the others do not claim.
func (u unit) of(expression string) bool {
	in := func(name string) bool { return strings.Contains(expression, name) }
	if u.names != nil {
		return slices.ContainsFunc(u.names, in)
	}
	for _, other := range units() {
		if slices.ContainsFunc(other.names, in) {
			return false
		}
	}
	return true
}

// ask returns the values of all expressions: each unit becomes an object file
// with an array of numbers, and that is read.
func ask(ctx context.Context, compiler string, all []comparison) (map[string]string, error) {
	folder, err := os.MkdirTemp("", "layout")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // nobody needs it
	values := map[string]string{}
	for i, u := range units() {
		expressions, symbols := u.questions(all)
		object := filepath.Join(folder, fmt.Sprintf("unit%d.o", i))
		if err := compile(ctx, compiler, object, program(u.headers, expressions)); err != nil {
			return nil, err
		}
		if err := read(object, expressions, symbols, values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// questions are the expressions and the symbols of GUIDs that a unit is asked for.
func (u unit) questions(all []comparison) (expressions, symbols []string) {
	for _, c := range all {
		switch {
		case !u.of(c.expression):
		case c.guid:
			symbols = append(symbols, c.expression)
		default:
			expressions = append(expressions, c.expression)
		}
	}
	slices.Sort(expressions)
	return slices.Compact(expressions), symbols
}

// arrayName is the symbol of the numbers in the object file.
const arrayName = "layout_numbers"

// program is C that has the values of the expressions in an array, cut to the 32
// bits that every number of the headers fits in, whatever its sign there.
func program(headers string, expressions []string) string {
	var b strings.Builder
	b.WriteString(headers)
	b.WriteString("#include <stddef.h>\n#include <stdint.h>\n")
	fmt.Fprintf(&b, "const uint64_t %s[] = {\n", arrayName)
	for _, expression := range expressions {
		fmt.Fprintf(&b, "\t(uint32_t)(%s),\n", expression)
	}
	b.WriteString("};\n")
	return b.String()
}

func compile(ctx context.Context, compiler, object, text string) error {
	command := exec.CommandContext(ctx, compiler, "-std=gnu11", "-I/usr/share/mingw-w64/include/ddk",
		"-Wno-attributes", "-fno-lto", "-c", "-x", "c", "-o", object, "-")
	command.Stdin = strings.NewReader(text)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, err, output)
	}
	return nil
}

// read takes the answers out of an object file.
func read(object string, expressions, symbols []string, values map[string]string) error {
	file, err := pe.Open(object)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // was only read
	numbers, err := symbolBytes(file, arrayName, 8*len(expressions))
	if err != nil {
		return err
	}
	for i, expression := range expressions {
		values[expression] = numberText(binary.LittleEndian.Uint64(numbers[8*i:]))
	}
	for _, symbol := range symbols {
		b, err := symbolBytes(file, symbol, 16)
		if err != nil {
			return err
		}
		values[symbol] = guidOf(b)
	}
	return nil
}

// guidOf is the text of a GUID's 16 bytes.
func guidOf(b []byte) string {
	return fmt.Sprintf("{%08x-%04x-%04x-%x-%x}", binary.LittleEndian.Uint32(b),
		binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// symbolBytes are the first bytes of a symbol.
func symbolBytes(file *pe.File, name string, count int) ([]byte, error) {
	for _, symbol := range file.Symbols {
		if symbol.Name != name || symbol.SectionNumber < 1 || int(symbol.SectionNumber) > len(file.Sections) {
			continue
		}
		data, err := file.Sections[symbol.SectionNumber-1].Data()
		if err != nil {
			return nil, err
		}
		if start := int(symbol.Value); start+count <= len(data) {
			return data[start : start+count], nil
		}
		return nil, errors.New("the object file is cut off")
	}
	return nil, fmt.Errorf("the object file has no symbol %s", name)
}
